"""Missing files that an experiment names are found before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.toolkit.data.sources.test_named_files import refusal
from tests.toolkit.workloads.spelling.spelling_files import tiny_plus, tiny_repair, tiny_words
from toolkit.config import Experiment
from toolkit.precheck.check_inputs import check_inputs


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
def test_a_missing_file_is_named_with_its_key(tmp_path: Path, override: str, key: str) -> None:
    assert refusal(tiny_words(tmp_path, override)) == [f"{key}: {tmp_path}/none.txt does not exist"]


def test_a_folder_of_texts_needs_both_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "pair"
    folder.mkdir()
    (folder / "corrupt.txt").write_text("a\n")
    experiment = tiny_words(tmp_path, f"data.test=[{folder}]")
    assert refusal(experiment) == [f"data.test.0: {folder} is a folder without correct.txt"]
    (folder / "correct.txt").write_text("a\n")
    check_inputs(experiment)


def test_faults_within_files_are_reported_together_with_missing_files(tmp_path: Path) -> None:
    (tmp_path / "blank.txt").write_text("\n")
    experiment = tiny_words(
        tmp_path, f"data.datasets=[{tmp_path}/blank.txt,none.txt]", "data.val_splits=null"
    )
    keys = [line.split(":")[0] for line in refusal(experiment)]
    assert keys == ["data.datasets.1", "data.datasets.0"]


def test_a_trained_model_needs_only_the_texts(tmp_path: Path) -> None:
    experiment = tiny_words(tmp_path)
    for name in ("tokenizer.json", "dictionary.txt"):
        (tmp_path / name).unlink()
    check_inputs(experiment, is_trained=True)


@pytest.mark.parametrize("tiny", [tiny_repair, tiny_plus])
def test_a_tokenizer_of_longer_tokens_is_no_tokenizer_for_the_repair_of_white_space(
    tmp_path: Path, tiny: Callable[..., Experiment]
) -> None:
    check_inputs(tiny(tmp_path))
    (fault,) = refusal(tiny(tmp_path, f"data.tokenizer_path={tmp_path}/tokenizer.json"))
    assert fault.startswith("data.tokenizer_path: ")
    assert "expected one of single characters" in fault
