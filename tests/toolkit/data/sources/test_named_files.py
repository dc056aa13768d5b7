"""The files that an experiment names are checked before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.support.tiny import tiny
from toolkit.config import Experiment
from toolkit.errors import DataError
from toolkit.precheck.check_inputs import check_inputs


def refusal(experiment: Experiment) -> list[str]:
    """What stands against the experiment, a line for each file."""
    with pytest.raises(DataError) as caught:
        check_inputs(experiment)
    return [line.strip(" -") for line in str(caught.value).splitlines()[1:]]


def test_existing_files_pass(tmp_path: Path) -> None:
    check_inputs(tiny(tmp_path))


@pytest.mark.parametrize("key", ["data.train", "data.test", "model.vectors"])
def test_a_missing_file_is_reported_with_its_key_and_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal(tiny(tmp_path, f"{key}=none.txt")) == [f"{key}: {tmp_path}/none.txt does not exist"]


def test_a_pipe_or_a_device_is_refused(tmp_path: Path) -> None:
    (line,) = refusal(tiny(tmp_path, "model.vectors=/dev/zero"))
    assert line.startswith("model.vectors: /dev/zero is a pipe or a device")


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (line,) = refusal(tiny(tmp_path, f"model.vectors={tmp_path}"))
    assert line == f"model.vectors: {tmp_path} is a folder, expected a file"


def test_all_missing_files_are_reported_at_once(tmp_path: Path) -> None:
    experiment = tiny(tmp_path)
    for split in ("train", "test"):
        (tmp_path / f"{split}.tsv").unlink()
    assert len(refusal(experiment)) == 2


def test_the_folder_of_prepared_sets_need_not_exist(tmp_path: Path) -> None:
    check_inputs(tiny(tmp_path, f"data.prepared_dir={tmp_path}/not/yet"))


def test_files_of_the_model_are_not_needed_once_it_is_trained(tmp_path: Path) -> None:
    check_inputs(tiny(tmp_path, "model.vectors=none.txt"), is_trained=True)
