"""Sheets score predictions; files that do not fit are refused with their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.workloads.spelling.benchmarks.folders import write_lines
from toolkit.errors import DataError, UserError
from toolkit.workloads.spelling.benchmarks.lines import read_lines
from toolkit.workloads.spelling.benchmarks.parsing import Figures, Sheet, open_sheet

#: Kind, texts, right answers.
Benchmark = tuple[str, tuple[str, ...], tuple[str, ...]]
OF_WORDS: Benchmark = ("sed_words", ("teh cat", "a dgo"), ("1 0", "0 1"))
OF_LINES: Benchmark = ("sed_sequence", ("teh cat", "a dog"), ("1", "0"))
OF_TEXTS: Benchmark = ("sec", ("teh cat", "1"), ("the cat", "1"))
OF_SPACES: Benchmark = ("tokenization_repair", ("thec at", "a b"), ("the cat", "a b"))


def sheet(
    folder: Path,
    kind: str,
    inputs: tuple[str, ...],
    golds: tuple[str, ...],
    *,
    lowercase: tuple[str, ...] | None = None,
) -> Sheet:
    return open_sheet(
        kind,
        write_lines(folder / "corrupt.txt", *inputs),
        write_lines(folder / "correct.txt", *golds),
        lowercase=None if lowercase is None else write_lines(folder / "lowercase.txt", *lowercase),
    )


def score(of: Sheet, *predictions: str) -> Figures:
    return of.score(predictions, "mine.txt", lambda lines: None)


def test_labels_of_lines_are_compared_one_by_one(tmp_path: Path) -> None:
    found = score(sheet(tmp_path, *OF_LINES), "1", "1")
    assert (found["precision"], found["recall"], found["sequence_accuracy"]) == (0.5, 1.0, 0.5)


def test_many_lines_are_scored_in_parts_and_each_part_is_reported(tmp_path: Path) -> None:
    of = sheet(tmp_path, "sec", ("teh cat",) * 1200, ("the cat",) * 1200)
    for _ in range(2):
        told: list[int] = []
        found = of.score(["the cat"] * 900 + ["teh cat"] * 300, "mine.txt", told.append)
        assert found["recall"] == 0.75
        assert sum(told) == 1200


def test_white_space_is_compared_where_it_changes(tmp_path: Path) -> None:
    found = score(sheet(tmp_path, *OF_SPACES), "the c at", "ab")
    assert (found["precision"], found["recall"]) == (0.5, 0.5)
    assert found["sequence_f1"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("kind", ["sec", "tokenization_repair"])
def test_case_is_ignored_in_lines_that_the_lowercase_file_marks(tmp_path: Path, kind: str) -> None:
    of = sheet(tmp_path, kind, ("The c at", "The c at"), ("The cat", "The cat"), lowercase=("1", "0"))
    assert score(of, "the cat", "The cat")["sequence_f1"] == 1
    if kind == "sec":
        assert score(of, "the cat", "the cat")["sequence_f1"] < 1
    else:
        with pytest.raises(DataError, match=r"^mine\.txt:2: "):
            score(of, "the cat", "the cat")


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes("\ufeffa\u2028b\r\n\x0cc\r\n\r\n".encode())
    assert read_lines(path) == ["a\u2028b", "\x0cc", ""]
    path.write_bytes(b"a\nb")
    assert read_lines(path) == ["a", "b"]


def test_labels_are_not_accepted_as_corrections(tmp_path: Path) -> None:
    of = sheet(tmp_path, *OF_TEXTS)
    for labels in (("1 0", "0"), ("", "1")):
        with pytest.raises(DataError, match=r"^mine\.txt: found only 0 and 1 in 2 lines, expected t"):
            score(of, *labels)
    assert score(of, "the cat", "1")["f1"] == 1
    # A model may write nothing early in training.
    assert score(of, "", "")["f1"] == 0
    numbers = sheet(tmp_path, "sec", ("1 0",), ("1 1",))
    assert score(numbers, "1 1")["f1"] == 1


def test_lines_that_are_too_different_are_those_of_the_file_that_has_them(tmp_path: Path) -> None:
    long, other = "a" * 20_000, "b" * 20_000
    with pytest.raises(DataError, match=r"correct\.txt:1-2: a line of 20000 characters differs by"):
        score(sheet(tmp_path, "sec", (long, "fine"), (other, "fine")), long, "fine")
    with pytest.raises(DataError, match=r"^mine\.txt:1-2: a line of 20000 characters differs by"):
        score(sheet(tmp_path, "sec", (long, "fine"), (long, "fine")), other, "fine")


@pytest.mark.parametrize(
    "benchmark, predictions, told",
    [
        (OF_WORDS, ("1", "0 1"), r"1: found 1 labels, expected 2: one for each word of the input"),
        (OF_WORDS, ("1 0", "0 2"), r"2: found '2', expected 0 \(right\) and 1 \(wrong\) only"),
        (OF_WORDS, ("1 0", "a " + "b" * 99), r"2: found 'a', expected 0"),
        (OF_LINES, ("1 0", "0"), r"1: found 2 labels, expected 1: one for the line$"),
        (OF_SPACES, ("the hat", "a b"), r"1: found 'the hat', .* \('thec at'\): only white"),
    ],
)
def test_predictions_that_do_not_fit_are_refused_with_their_line(
    tmp_path: Path, benchmark: Benchmark, predictions: tuple[str, ...], told: str
) -> None:
    with pytest.raises(DataError, match=rf"^mine\.txt:{told}"):
        score(sheet(tmp_path, *benchmark), *predictions)


def test_files_of_a_benchmark_must_match_the_input(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"correct\.txt: found 1 lines, expected 2, as many as corrupt\.txt"):
        sheet(tmp_path, "sec", ("a", "b"), ("a",))
    with pytest.raises(DataError, match=r"correct\.txt:1: found 1 labels, expected 2"):
        sheet(tmp_path, "sed_words", ("a b",), ("0",))
    with pytest.raises(DataError, match=r"correct\.txt:1: found 'a c', expected the characters"):
        sheet(tmp_path, "tokenization_repair", ("ab",), ("a c",))
    with pytest.raises(DataError, match=r"corrupt\.txt is empty"):
        sheet(tmp_path, "sec", (), ())
    with pytest.raises(DataError, match=r"lowercase\.txt: found 1 lines, expected 2"):
        sheet(tmp_path, "sec", ("a", "b"), ("a", "b"), lowercase=("1",))
    with pytest.raises(UserError, match=r"lowercase\.txt: sed_words compares labels"):
        sheet(tmp_path, "sed_words", ("a",), ("0",), lowercase=("1",))
