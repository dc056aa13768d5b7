"""What is wrong with data and models is found before anything is started for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.workloads.text_classification.tiny_texts import tiny_bert
from toolkit.errors import DataError
from toolkit.precheck.check_inputs import check_inputs


def test_model_that_is_there_passes(tmp_path: Path) -> None:
    check_inputs(tiny_bert(tmp_path))


def test_folder_that_was_forgotten_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative or not: beside what is there it is a folder, and no name on a hub."""
    tiny_bert(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    for path in ("data/missing", str(tmp_path / "elsewhere" / "missing")):
        with pytest.raises(DataError, match=rf"there is no folder .*{path}; fetch the model"):
            check_inputs(tiny_bert(tmp_path / "data", f"model.path={path}"))


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_folder_that_lacks_a_file_is_told_with_what_it_holds(tmp_path: Path, name: str) -> None:
    experiment = tiny_bert(tmp_path)
    (tmp_path / "bert" / name).unlink()
    with pytest.raises(DataError, match=rf"there is no {name}.*it holds: .*model\.safetensors"):
        check_inputs(experiment)


def test_weights_that_are_a_pickle_are_told_with_the_way_out(tmp_path: Path) -> None:
    experiment = tiny_bert(tmp_path)
    (tmp_path / "bert" / "model.safetensors").rename(tmp_path / "bert" / "pytorch_model.bin")
    with pytest.raises(DataError, match=r"model\.path.*there is no model\.safetensors.*pytorch_model\.bin"):
        check_inputs(experiment)


def test_name_on_a_hub_is_left_to_the_worker(tmp_path: Path) -> None:
    check_inputs(tiny_bert(tmp_path, "model.path=somebody/some-model"))
