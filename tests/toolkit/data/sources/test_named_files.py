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


@pytest.mark.parametrize(
    "key, name, problem",
    [
        ("data.train", "none.txt", "does not exist"),
        ("model.vectors", "none.txt", "does not exist"),
        ("model.vectors", "/dev/zero", "is a pipe or a device, expected a file"),
        ("model.vectors", "folder", "is a folder, expected a file"),
    ],
)
def test_what_is_not_a_file_is_reported_with_its_key_and_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, name: str, problem: str
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    assert refusal(tiny(tmp_path, f"{key}={name}")) == [f"{key}: {tmp_path / name} {problem}"]


def test_all_missing_files_are_reported_at_once(tmp_path: Path) -> None:
    experiment = tiny(tmp_path)
    for split in ("train", "test"):
        (tmp_path / f"{split}.tsv").unlink()
    assert len(refusal(experiment)) == 2


def test_the_folder_of_prepared_sets_need_not_exist(tmp_path: Path) -> None:
    check_inputs(tiny(tmp_path, f"data.prepared_dir={tmp_path}/not/yet"))


def test_files_of_the_model_are_not_needed_once_it_is_trained(tmp_path: Path) -> None:
    check_inputs(tiny(tmp_path, "model.vectors=none.txt"), is_trained=True)
