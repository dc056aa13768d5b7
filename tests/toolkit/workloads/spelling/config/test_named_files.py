"""Files that an experiment names are looked for before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.workloads.spelling.spelling_files import tiny_words
from toolkit.config import Experiment
from toolkit.errors import DataError
from toolkit.precheck.check_inputs import check_inputs


def refusal(experiment: Experiment) -> list[str]:
    """What stands against the experiment, a line for each file."""
    with pytest.raises(DataError) as caught:
        check_inputs(experiment)
    return [line.strip(" -") for line in str(caught.value).splitlines()[1:]]


def test_what_is_there_passes(tmp_path: Path) -> None:
    check_inputs(tiny_words(tmp_path))


@pytest.mark.parametrize(
    "override, key",
    [
        ("data.datasets=[none.txt]", "data.datasets.0"),
        ("data={path: none.txt, tokenizer_path: tokenizer.json}", "data.path"),
        ("data.test=[none.txt]", "data.test.0"),
        ("data.tokenizer_path=none.txt", "data.tokenizer_path"),
        ("data.output_tokenizer_path=none.txt", "data.output_tokenizer_path"),
        ("data.dictionary=none.txt", "data.dictionary"),
        ("data.noise={kind: realistic, misspellings: none.txt}", "data.noise.misspellings"),
        (
            "data.noise={kind: switch, choices: [none, {kind: mixed, misspellings: none.txt}]}",
            "data.noise.choices.1.misspellings",
        ),
    ],
)
def test_a_file_that_is_missing_is_told_with_its_key_and_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, override: str, key: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal(tiny_words(tmp_path, override)) == [f"{key}: {tmp_path}/none.txt does not exist"]


def test_a_pipe_or_a_device_is_refused(tmp_path: Path) -> None:
    (line,) = refusal(tiny_words(tmp_path, "data.dictionary=/dev/zero"))
    assert line.startswith("data.dictionary: /dev/zero is a pipe or a device")


def test_all_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    experiment = tiny_words(tmp_path)
    for name in ("texts.txt", "dictionary.txt"):
        (tmp_path / name).unlink()
    assert len(refusal(experiment)) == 2


def test_a_folder_of_texts_needs_both_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "pair"
    folder.mkdir()
    (folder / "corrupt.txt").touch()
    experiment = tiny_words(tmp_path, f"data.test=[{folder}]")
    assert refusal(experiment) == [f"data.test.0: {folder} is a folder without correct.txt"]
    (folder / "correct.txt").touch()
    check_inputs(experiment)


def test_a_tokenizer_is_no_folder(tmp_path: Path) -> None:
    (line,) = refusal(tiny_words(tmp_path, f"data.tokenizer_path={tmp_path}"))
    assert line == f"data.tokenizer_path: {tmp_path} is a folder, expected a file"


def test_where_prepared_sets_are_kept_need_not_exist(tmp_path: Path) -> None:
    check_inputs(tiny_words(tmp_path, f"data.prepared_dir={tmp_path}/not/yet"))


def test_a_trained_model_needs_only_the_texts(tmp_path: Path) -> None:
    experiment = tiny_words(tmp_path)
    for name in ("tokenizer.json", "dictionary.txt"):
        (tmp_path / name).unlink()
    check_inputs(experiment, is_trained=True)
