"""Made benchmarks: their files, and that training has none of the misspellings of the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.nlp.sentences import TEXTS
from toolkit.errors import DataError
from toolkit.workloads.spelling.benchmarks.make import Size, tasks_of, write_benchmark
from toolkit.workloads.spelling.data.noise.misspellings import Misspellings, divide

WORDS = {word.strip("(),.;?").lower() for text in TEXTS for word in text.split()}
LISTED = {word: [f"{word}{letter}" for letter in "qxyzk"] for word in sorted(WORDS) if word.isalpha()}
SPLITS = divide(LISTED, {"train": 0.5, "test": 0.5}, 22)
TASKS = tasks_of(0.0, Misspellings(SPLITS["test"]))


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def written(tmp_path: Path, task: str, seed: int = 22) -> tuple[list[str], list[str], Size]:
    folder = tmp_path / task / "own" / "test"
    size = write_benchmark(folder, TASKS[task], TEXTS, seed)
    assert {each.name for each in folder.iterdir()} == {"corrupt.txt", "correct.txt"}
    return lines(folder / "corrupt.txt"), lines(folder / "correct.txt"), size


def test_right_texts_are_the_clean_texts(tmp_path):
    corrupt, correct, size = written(tmp_path, "sec")
    assert correct == TEXTS
    assert size.lines == len(TEXTS)
    assert size.lines_with_errors == sum(a != b for a, b in zip(corrupt, correct, strict=True))


def test_words_are_labelled_where_they_differ(tmp_path):
    corrupt, correct, size = written(tmp_path, "sed_words")
    for text, labels, clean in zip(corrupt, correct, TEXTS, strict=True):
        differ = [a != b for a, b in zip(text.split(), clean.split(), strict=True)]
        assert labels == " ".join(str(int(each)) for each in differ)
    assert size.words == sum(map(len, map(str.split, TEXTS)))
    assert size.errors == sum(labels.count("1") for labels in correct) > 0


def test_words_and_corrections_have_the_same_errors(tmp_path):
    assert written(tmp_path, "sed_words")[0] == written(tmp_path, "sec")[0]


def test_sequence_is_labelled_1_if_it_differs_from_the_clean_text(tmp_path):
    corrupt, correct, _ = written(tmp_path, "sed_sequence")
    assert correct == [str(int(text != clean)) for text, clean in zip(corrupt, TEXTS, strict=True)]
    assert set(correct) == {"0", "1"}


def test_only_white_space_is_to_be_repaired(tmp_path):
    corrupt, correct, size = written(tmp_path, "tokenization_repair")
    assert corrupt != correct
    assert correct != TEXTS, "words are misspelt, too"
    assert ["".join(text.split()) for text in corrupt] == ["".join(text.split()) for text in correct]
    assert size.errors is None


def test_the_same_seed_makes_the_same_files(tmp_path):
    assert written(tmp_path / "a", "sec") == written(tmp_path / "b", "sec")
    assert written(tmp_path / "c", "sec", seed=1)[0] != lines(tmp_path / "a/sec/own/test/corrupt.txt")


def test_a_benchmark_without_texts_is_refused_and_leaves_no_file(tmp_path):
    with pytest.raises(DataError, match="there are no texts"):
        write_benchmark(tmp_path, TASKS["sec"], [], 22)
    assert list(tmp_path.iterdir()) == []


def test_no_error_of_a_test_is_a_misspelling_of_training(tmp_path):
    seen = {wrong.lower() for wrongs in SPLITS["train"].values() for wrong in wrongs}
    unseen = {wrong.lower() for wrongs in SPLITS["test"].values() for wrong in wrongs}
    assert seen
    assert not seen & unseen
    corrupt, correct, _ = written(tmp_path, "sec")
    pairs = [zip(a.split(), b.split(), strict=True) for a, b in zip(corrupt, correct, strict=True)]
    errors = {a.strip("(),.;?").lower() for each in pairs for a, b in each if a != b}
    assert errors
    assert errors <= unseen
