"""Faults of data and models are found before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.workloads.text_classification.tiny_texts import tiny_bert, tiny_docnn
from toolkit.errors import DataError
from toolkit.precheck.check_inputs import check_inputs


def test_missing_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path in an existing folder is not taken for a name on a hub."""
    tiny_bert(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    for path in ("data/missing", str(tmp_path / "elsewhere" / "missing")):
        with pytest.raises(DataError, match=rf"there is no folder .*{path}; fetch the model"):
            check_inputs(tiny_bert(tmp_path / "data", f"model.path={path}"))


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_missing_file_of_a_folder_is_reported_with_the_existing_files(tmp_path: Path, name: str) -> None:
    experiment = tiny_bert(tmp_path)
    (tmp_path / "bert" / name).unlink()
    with pytest.raises(DataError, match=rf"there is no {name}.*it holds: .*model\.safetensors"):
        check_inputs(experiment)


def test_weights_in_a_pickle_are_reported_with_the_missing_file(tmp_path: Path) -> None:
    experiment = tiny_bert(tmp_path)
    (tmp_path / "bert" / "model.safetensors").rename(tmp_path / "bert" / "pytorch_model.bin")
    with pytest.raises(DataError, match=r"model\.path.*there is no model\.safetensors.*pytorch_model\.bin"):
        check_inputs(experiment)


def test_name_on_a_hub_is_not_checked(tmp_path: Path) -> None:
    check_inputs(tiny_bert(tmp_path, "model.path=somebody/some-model"))


def test_a_label_that_is_named_twice_is_refused_without_other_messages(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        check_inputs(tiny_docnn(tmp_path, "data.labels=[good, good, bad]"))
    assert str(caught.value).splitlines()[1:] == ["  - data.labels: found good more than once"]
