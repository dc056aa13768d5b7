"""Faults within files are found before a job is submitted, and only those that the preparation refuses."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.workloads.spelling.data.samples.conftest import Make
from toolkit.errors import DataError
from toolkit.workloads.spelling.config.data import SpellingTexts
from toolkit.workloads.spelling.config.noise import ChainedNoise, RealisticNoise
from toolkit.workloads.spelling.data.samples import checks
from toolkit.workloads.spelling.data.samples.prepared import prepare

Written = Callable[..., str]
LINES = ["over the stone", "under the bridge", "a letter", "the garden", "morning"] * 4


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes a file of lines, or of bytes, and returns its path."""

    def write(name: str, content: list[str] | bytes) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        lines = content if isinstance(content, bytes) else "".join(f"{each}\n" for each in content).encode()
        path.write_bytes(lines)
        return str(path)

    return write


def pair(written: Written, corrupt: list[str], correct: list[str]) -> str:
    written("pair/corrupt.txt", corrupt)
    return os.path.dirname(written("pair/correct.txt", correct))


def faults(data: SpellingTexts, **options: bool) -> list[str]:
    return [f"{'.'.join(each.key)}: {each.problem}" for each in data.violations(**options)]


RECORD = json.dumps({"sequence": "a letter"})
TOKENIZER = {"version": "1.0", "model": {"type": "WordLevel", "vocab": {"<unk>": 0}, "unk_token": "<unk>"}}
#: What is wrong, the key of the file, and the settings of the section.
FAULTY: dict[str, tuple[str, Callable[[Written], dict[str, Any]]]] = {
    "bytes that are not UTF-8": (
        "datasets.0",
        lambda written: {"datasets": (written("t.txt", "\n".join([*LINES, "für"]).encode("latin-1")),)},
    ),
    "a compressed file": (
        "test.0",
        lambda written: {"test": (written("t.txt.gz", gzip.compress("\n".join(LINES).encode())),)},
    ),
    "an empty data set": ("datasets.0", lambda written: {"datasets": (written("t.txt", b""),)}),
    "a data set of one line": ("datasets.0", lambda written: {"datasets": (written("t.txt", ["a"]),)}),
    "an empty file for testing": ("test.0", lambda written: {"test": (written("t.txt", b"\n \n"),)}),
    "files with different numbers of lines": (
        "test.0",
        lambda written: {"test": (pair(written, ["a b", "c"], ["a b"]),)},
    ),
    "a missing label": (
        "test.0",
        lambda written: {"test": (pair(written, ["a b c"] * 2, ["0 1", "1 0 0"]),)},
    ),
    "a comma after an object": (
        "validation.0",
        lambda written: {"val_splits": None, "validation": (written("t.jsonl", [RECORD, RECORD + ","]),)},
    ),
    "an object without a model": (
        "tokenizer_path",
        lambda written: {"tokenizer_path": written("t.json", b"{}")},
    ),
    "a tokenizer without special tokens": (
        "output_tokenizer_path",
        lambda written: {"output_tokenizer_path": written("t.json", json.dumps(TOKENIZER).encode())},
    ),
    "a line without a tab": (
        "dictionary",
        lambda written: {"dictionary": written("d.txt", ["the\t1", "a 2"])},
    ),
    "misspellings that are no JSON": (
        "noise.steps.0.misspellings",
        lambda written: {
            "noise": ChainedNoise(steps=(RealisticNoise(misspellings=written("m.json", b"{")),))
        },
    ),
}


@pytest.mark.parametrize("what", FAULTY)
def test_a_fault_in_a_file_is_reported_as_by_the_preparation(what: str, make: Make, written: Written) -> None:
    key, settings = FAULTY[what]
    data = make(**settings(written))
    (found,) = faults(data)
    assert found.startswith(f"data.{key}: ")
    with pytest.raises(DataError) as refused:
        prepare(data)
    if "testing" not in what:
        assert found.removeprefix(f"data.{key}: ") in str(refused.value)


@pytest.mark.parametrize(
    "settings",
    [
        lambda written: {"test": (written("t.txt", b"\xef\xbb\xbf\n\r\na\rb\0\r\n\xe2\x80\xa8"),)},
        lambda written: {"test": (written("t.txt", ["a"]), written("empty.txt", b""))},
        lambda written: {"test": (written("t.json", [RECORD, "", '{"sequence": "", "id": 1}']),)},
        lambda written: {"test": (pair(written, ["a b", "", "c"], ["0 1", "", "1"]),)},
        lambda written: {"test": (pair(written, ["a b", "c"], ["a b c", ""]),)},
    ],
    ids=["blank lines", "one empty file of two", "records", "labels", "targets"],
)
def test_files_that_can_be_prepared_are_accepted(
    settings: Callable[[Written], dict[str, Any]], make: Make, written: Written
) -> None:
    data = make(**settings(written))
    assert faults(data) == []
    assert prepare(data).splits["test"]


def test_lines_that_no_limit_chooses_are_not_checked(make: Make, written: Written) -> None:
    path = written("t.txt", "\n".join([*LINES, "für"]).encode("latin-1"))
    assert faults(make(datasets=(path,), val_splits=(1.0,), dataset_limits=(2,))) == []
    # All lines are chosen.
    assert len(faults(make(datasets=(path,), val_splits=(1.0,), dataset_limits=(10**8,)))) == 1


def test_file_in_place_of_a_folder_is_a_missing_file(make: Make, written: Written) -> None:
    path = f"{written('t.txt', LINES)}/train"
    (found,) = faults(make(datasets=(path,)))
    assert path in found


def test_only_the_first_lines_are_read(
    make: Make, written: Written, language: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "_LINES", 3)
    monkeypatch.setattr(checks, "_FEW_BYTES", 1)
    settings = {
        "datasets": (written("t.txt", b"a\nb\nc\n\xff\n"),),
        "test": (pair(written, ["a"] * 4, ["a"] * 5),),
        "dictionary": written("d.txt", ["the\t1", "a\t2", "stone\t1", "no tab"]),
        "tokenizer_path": written("t.json", b"{}"),
    }
    assert faults(make(**settings)) == []
    monkeypatch.setattr(checks, "_LINES", 4)
    assert [each.split(":")[0] for each in faults(make(**settings))] == [
        "data.datasets.0", "data.test.0", "data.dictionary",
    ]  # fmt: skip


def test_a_trained_model_needs_no_encoders_and_scores_a_file_of_one_line(
    make: Make, written: Written
) -> None:
    names = ("tokenizer_path", "output_tokenizer_path", "dictionary")
    encoders = {name: written(f"{name}.json", b"no tab") for name in names}
    data = make(datasets=None, val_splits=None, path=written("t.txt", ["a"]), **encoders)
    assert faults(data, is_trained=True) == []
    assert len(faults(data)) == 4
