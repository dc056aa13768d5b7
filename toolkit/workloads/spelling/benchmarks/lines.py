"""Read and check parallel files of lines: texts, labels of words, labels of lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError
from toolkit.workloads.spelling.data.texts.text_files import reading
from toolkit.workloads.spelling.data.texts.words import parse_labels

Labels = npt.NDArray[np.bool_]


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text file (UTF-8), without their ends. Raises DataError."""
    with reading(path), open(path, encoding="utf-8-sig", newline="") as stream:
        text = stream.read()
    lines = text.split("\n")
    # Only line feeds end lines, because a text may contain any other separator.
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


def check_count(source: str, lines: Sequence[str], expected: int, of: str) -> None:
    """Raise DataError unless there are as many lines as in another file."""
    if len(lines) != expected:
        raise DataError(f"{source}: found {len(lines):,} lines, expected {expected:,}, as many as {of} has")


def check_texts(source: str, lines: Sequence[str], inputs: Sequence[str]) -> None:
    """Raise DataError if lines have labels instead of texts.

    Empty lines are accepted, because a model may write nothing early in training.
    """
    if any(lines) and _without_text(lines) and not _without_text(inputs):
        raise DataError(f"{source}: found only 0 and 1 in {len(lines):,} lines, expected texts")


def _without_text(lines: Sequence[str]) -> bool:
    return all(set(line) <= {"0", "1", " "} for line in lines)


def labels(source: str, lines: Sequence[str], counts: Sequence[int], what: str) -> Labels:
    """Return the labels of all lines, True for 1.

    counts  the number of labels that each line must have
    what    what each label is for, as a part of the message

    Raises DataError naming the line.
    """
    pairs = enumerate(zip(lines, counts, strict=True), start=1)
    rows = [parse_labels(line, f"{source}:{number}", (count,), what) for number, (line, count) in pairs]
    return np.array([label for row in rows for label in row], bool)
