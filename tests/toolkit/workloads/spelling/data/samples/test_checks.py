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
from toolkit.workloads.spelling.config.noise import (
    ChainedNoise,
    NoNoise,
    RealisticNoise,
    ReplaceNoise,
    SaveNoise,
    SwitchNoise,
    WhitespaceNoise,
)
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


def settings_of(key: str, path: str) -> dict[str, Any]:
    """Return the settings of a section that name a file by this key."""
    name, *places = key.split(".")
    if name == "noise":
        return {"noise": ChainedNoise(steps=(RealisticNoise(misspellings=path),))}
    return {name: (path,) if places else path} | ({"val_splits": None} if name == "validation" else {})


RECORD = json.dumps({"sequence": "a letter"})
TOKENIZER = {"version": "1.0", "model": {"type": "WordLevel", "vocab": {"<unk>": 0}, "unk_token": "<unk>"}}
#: The key of a file, its name and content (of two files: its folder's), and what is said about it.
FAULTY: list[tuple[str, dict[str, str | bytes], str]] = [
    (
        "datasets.0",
        {"t.txt": "\n".join([*LINES, *LINES, "für"]).encode("latin-1")},
        "t.txt:41: byte 2 is not",
    ),
    ("test.0", {"t.txt": b"a\n\xff\n"}, "t.txt:2: byte 1 is not UTF-8"),
    ("test.0", {"t.txt.gz": gzip.compress("\n".join(LINES).encode())}, "t.txt.gz:1: byte 2 is not UTF-8"),
    ("datasets.0", {"t.txt": ""}, "t.txt has 0 samples"),
    ("datasets.0", {"t.txt": "a\n"}, "t.txt has 1 sample,"),
    ("test.0", {"t.txt": "\n \n"}, "t.txt has no text"),
    ("test.0", {"corrupt.txt": "a b\nc\n", "correct.txt": "a b\n"}, "correct.txt 1; do they belong together"),
    ("test.0", {"corrupt.txt": "a b\n", "correct.txt": "a b\nc\n"}, "correct.txt 2; do they belong together"),
    ("test.0", {"corrupt.txt": "a b c\na\n", "correct.txt": "0 1\n1\n"}, "correct.txt:1: found 2 labels"),
    ("test.0", {"corrupt.txt": "a b\n", "correct.txt": "0 1 1\n"}, "correct.txt:1: found 3 labels"),
    ("test.0", {"corrupt.txt": "a b\n", "correct.txt": "0 O\n"}, "correct.txt:1: found 'O', expected 0"),
    ("test.0", {"corrupt.txt": "a b\n", "correct.txt": "01\n"}, "correct.txt:1: found '01', expected 0"),
    ("validation.0", {"t.jsonl": f"{RECORD}\n{RECORD},\n"}, "t.jsonl:2: not JSON"),
    ("test.0", {"t.jsonl": "a\n"}, "t.jsonl:1: not JSON"),
    ("test.0", {"t.jsonl": "[" * 100_000 + "\n"}, "t.jsonl:1: not JSON"),
    ("test.0", {"t.jsonl": "{}\n"}, "t.jsonl:1: expected an object with texts under `sequence`"),
    ("test.0", {"t.jsonl": '{"sequence": "cut \\ud83d"}\n'}, "t.jsonl:1: \\ud83d is not a character"),
    ("tokenizer_path", {"t.json": "{}"}, "is not a tokenizer"),
    ("output_tokenizer_path", {"t.json": json.dumps(TOKENIZER)}, "t.json lacks <pad>"),
    ("dictionary", {"d.txt": "the\t1\na 2\n"}, "d.txt:2: found 'a 2'"),
    ("noise.steps.0.misspellings", {"m.json": "{"}, "m.json is not JSON"),
]


@pytest.mark.parametrize("key, files, said", FAULTY, ids=[f"{said} ({key})" for key, _, said in FAULTY])
def test_a_fault_in_a_file_is_reported_as_by_the_preparation(
    key: str, files: dict[str, str | bytes], said: str, make: Make, written: Written, tmp_path: Path
) -> None:
    paths = [
        written(f"given/{name}", each if isinstance(each, bytes) else each.encode())
        for name, each in files.items()
    ]
    data = make(**settings_of(key, paths[0] if len(paths) == 1 else os.path.dirname(paths[0])))
    (found,) = faults(data)
    assert found.startswith(f"data.{key}: ")
    assert said in found
    with pytest.raises(DataError) as refused:
        prepare(data)
    # The preparation also knows the lines that are too long.
    assert found.removeprefix(f"data.{key}: ") in str(refused.value) or "no text" in str(refused.value)
    assert not list((tmp_path / "prepared").glob("[!.]*"))


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


@pytest.mark.parametrize(
    "noise, texts, is_told",
    [
        (NoNoise(), "t.txt", True),
        (ChainedNoise(steps=(SaveNoise(), ReplaceNoise())), "t.txt", True),
        (SwitchNoise(choices=(NoNoise(), WhitespaceNoise())), "t.txt", False),
        (NoNoise(), "t.jsonl", False),
        (NoNoise(), "pair", False),
    ],
)
def test_noise_without_errors_in_clean_texts_is_a_warning(
    make: Make, written: Written, noise: Any, texts: str, is_told: bool
) -> None:
    pair(written, ["a b"], ["a c"])
    path = Path(written("t.txt", LINES)).with_name(texts)
    warnings = list(make(datasets=(str(path),), noise=noise).warnings())
    assert [each.key for each in warnings] == ([("data", "noise")] if is_told else [])
