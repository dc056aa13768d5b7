"""Sheets: the texts of a benchmark with the right answers; predictions are scored on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from toolkit.errors import DataError, UserError
from toolkit.workloads.spelling.benchmarks.lines import (
    Labels,
    check_count,
    check_texts,
    flags,
    labels,
    read_lines,
    shortened,
)
from toolkit.workloads.spelling.data.texts.real_words import RealWords
from toolkit.workloads.spelling.data.texts.repairs import differs_in_space
from toolkit.workloads.spelling.metrics.correction import CorrectionScore, misspelt_words, score_corrections
from toolkit.workloads.spelling.metrics.detection import score_labels
from toolkit.workloads.spelling.metrics.edits import Words
from toolkit.workloads.spelling.metrics.whitespace import score_whitespace

Figures = dict[str, float]
#: Called several times, with the number of lines that were scored since the last call.
Advance = Callable[[int], object]

_LINES_AT_ONCE = 2000


class Sheet(ABC):
    """Texts with the right answers."""

    def __init__(self, inputs: Sequence[str]) -> None:
        self.inputs = inputs

    def score(self, predictions: Sequence[str], source: str, advance: Advance) -> Figures:
        """Return the metrics of the kind by name. Raises DataError naming source and line."""
        check_count(source, predictions, len(self.inputs), "the input")
        return self._figures(predictions, source, advance)

    @abstractmethod
    def _figures(self, predictions: Sequence[str], source: str, advance: Advance) -> Figures: ...


def open_sheet(
    kind: str,
    corrupt: Path,
    correct: Path,
    *,
    lowercase: Path | bool | None = None,
    dictionary: Collection[str] | None = None,
) -> Sheet:
    """Read a benchmark of a kind in KINDS.

    lowercase   whether case is ignored (labels are not affected); for corrections and the repair of white
                space also a file with 1 for each line in which case is ignored
    dictionary  words, to score real-word errors and others separately

    Raises DataError naming file and line.
    """
    inputs, golds = read_lines(corrupt), read_lines(correct)
    check_count(str(correct), golds, len(inputs), corrupt.name)
    if not inputs:
        raise DataError(f"{corrupt} is empty")
    if kind in ("sed_words", "sed_sequence"):
        if isinstance(lowercase, Path):
            raise UserError(f"{lowercase}: {kind} compares labels, not texts: remove the file")
        return _Detection(kind, inputs, golds, str(correct), dictionary)
    lower = _lower(lowercase, len(inputs), corrupt.name)
    if kind == "sec":
        return _Corrections(inputs, golds, str(correct), lower)
    return _Repair(inputs, golds, str(correct), lower)


def _lower(lowercase: Path | bool | None, count: int, of: str) -> Labels:
    if not isinstance(lowercase, Path):
        return np.full(count, bool(lowercase))
    lines = read_lines(lowercase)
    check_count(str(lowercase), lines, count, of)
    return flags(str(lowercase), lines)


class _Detection(Sheet):
    """Labels of words, or of lines."""

    def __init__(
        self,
        kind: str,
        inputs: Sequence[str],
        golds: Sequence[str],
        source: str,
        dictionary: Collection[str] | None,
    ) -> None:
        super().__init__(inputs)
        self._of_words = kind == "sed_words"
        self._golds = self._labels(source, golds)
        self._real: Labels | None = None
        if self._of_words and dictionary is not None:
            self._real = RealWords(dictionary).of([word for line in inputs for word in line.split()])

    def _labels(self, source: str, lines: Sequence[str]) -> Labels:
        if self._of_words:
            counts = [len(line.split()) for line in self.inputs]
            return labels(source, lines, counts, "one for each word of the input")
        return flags(source, lines)

    def _figures(self, predictions: Sequence[str], source: str, advance: Advance) -> Figures:
        found = score_labels(self._labels(source, predictions), self._golds, self._real)
        advance(len(predictions))
        accuracy = "word_accuracy" if self._of_words else "sequence_accuracy"
        figures = {**found.counts.figures(), accuracy: found.accuracy}
        if self._real is not None:
            figures |= found.rates()
        return figures


class _Texts(Sheet):
    """Right texts; `lower` has the lines in which case is ignored."""

    def __init__(self, inputs: Sequence[str], golds: Sequence[str], lower: Labels) -> None:
        super().__init__(inputs)
        self._lower = lower
        self._texts, self._golds = self._cased(inputs), self._cased(golds)

    def _cased(self, lines: Sequence[str]) -> Sequence[str]:
        return [line.lower() if flag else line for line, flag in zip(lines, self._lower, strict=True)]


class _Corrections(_Texts):
    """Texts without errors."""

    def __init__(self, inputs: Sequence[str], golds: Sequence[str], source: str, lower: Labels) -> None:
        super().__init__(inputs, golds, lower)
        self._source = source
        self._misspelt: list[Words] = []

    def _figures(self, predictions: Sequence[str], source: str, advance: Advance) -> Figures:
        check_texts(source, predictions, self.inputs)
        made = self._cased(predictions)
        score = CorrectionScore()
        for start in range(0, len(made), _LINES_AT_ONCE):
            part = slice(start, start + _LINES_AT_ONCE)
            lines = f"{start + 1}-{min(part.stop, len(made))}"
            with _of_lines(self._source, lines):
                misspelt = self._misspelt_words(part)
            with _of_lines(source, lines):
                score += score_corrections(self._texts[part], made[part], self._golds[part], misspelt)
            advance(len(misspelt))
        return {**score.counts.figures(), "sequence_f1": score.sequence_f1, "mned": score.mned}

    def _misspelt_words(self, part: slice) -> Sequence[Words]:
        """The misspelt words of these lines, computed once for all predictions."""
        if len(self._misspelt) <= part.start:
            self._misspelt += misspelt_words(self._texts[part], self._golds[part])
        return self._misspelt[part]


@contextmanager
def _of_lines(source: str, lines: str) -> Iterator[None]:
    """Name these lines of a file in a DataError."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{source}:{lines}: {error}") from error


class _Repair(_Texts):
    """Texts with the right white space."""

    def __init__(self, inputs: Sequence[str], golds: Sequence[str], source: str, lower: Labels) -> None:
        super().__init__(inputs, golds, lower)
        self._check(source, self._golds)

    def _check(self, source: str, lines: Sequence[str]) -> None:
        for number, (text, line) in enumerate(zip(self._texts, lines, strict=True), start=1):
            if not differs_in_space(text, line):
                raise DataError(
                    f"{source}:{number}: found {shortened(line)!r}, expected the characters of the input "
                    f"({shortened(text)!r}): only white space may differ"
                )

    def _figures(self, predictions: Sequence[str], source: str, advance: Advance) -> Figures:
        made = self._cased(predictions)
        self._check(source, made)
        score = score_whitespace(self._texts, made, self._golds)
        advance(len(made))
        return {
            **score.counts.figures(),
            "sequence_f1": score.sequence_f1,
            "sequence_accuracy": score.sequence_accuracy,
        }
