"""A sheet: texts with what is right for each of them, on which predictions are scored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Protocol

from toolkit.benchmarks.kinds import KINDS
from toolkit.benchmarks.lines import Labels, check_count, check_texts, flags, labels, read_lines, shortened
from toolkit.errors import DataError, UserError
from toolkit.metrics.spelling.correction import CorrectionScore, misspelt_words, score_corrections
from toolkit.metrics.spelling.counts import Counts
from toolkit.metrics.spelling.detection import real_words, score_labels
from toolkit.metrics.spelling.distance import DistanceScore, score_distances
from toolkit.metrics.spelling.edits import Words
from toolkit.metrics.spelling.whitespace import WhitespaceScore, same_characters, score_whitespace

Figures = dict[str, float]
#: Is told of lines that have been scored, a few at a time.
Tell = Callable[[int], object]

_LINES_AT_ONCE = 2000


class Sheet(Protocol):
    """Texts, and the scores of predictions for them."""

    @property
    def inputs(self) -> Sequence[str]: ...

    def score(self, predictions: Sequence[str], source: str, tell: Tell) -> Figures:
        """Return the metrics of the kind by name. Raises DataError naming source and line."""
        ...


def open_sheet(
    kind: str,
    corrupt: Path,
    correct: Path,
    *,
    lowercase: Path | None = None,
    dictionary: Collection[str] | None = None,
) -> Sheet:
    """Read a benchmark.

    lowercase   file with a 1 for each line of which upper and lower case are not told apart; for
                corrections and the repair of white space
    dictionary  words, to tell errors in words apart that are words themselves

    Raises DataError naming file and line.
    """
    inputs, golds = read_lines(corrupt), read_lines(correct)
    check_count(str(correct), golds, len(inputs), corrupt.name)
    if not inputs:
        raise DataError(f"{corrupt} is empty")
    if kind in ("sed_words", "sed_sequence"):
        if lowercase is not None:
            raise UserError(f"{lowercase}: {kind} has labels to compare and no texts: leave the file out")
        return _Detection(kind, inputs, golds, str(correct), dictionary)
    lower = _lower(lowercase, len(inputs), corrupt.name)
    if kind == "sec":
        return _Corrections(inputs, golds, lower)
    if kind == "tokenization_repair":
        return _Repair(inputs, golds, str(correct), lower)
    raise UserError(f"there is no kind {kind!r}; there are {', '.join(KINDS)}")


def _lower(path: Path | None, count: int, of: str) -> Labels | None:
    if path is None:
        return None
    lines = read_lines(path)
    check_count(str(path), lines, count, of)
    return flags(str(path), lines)


def _cased(lines: Sequence[str], lower: Labels | None) -> Sequence[str]:
    if lower is None:
        return lines
    return [line.lower() if flag else line for line, flag in zip(lines, lower, strict=True)]


class _Detection:
    """Labels of words, or of lines."""

    def __init__(
        self,
        kind: str,
        inputs: Sequence[str],
        golds: Sequence[str],
        source: str,
        dictionary: Collection[str] | None,
    ) -> None:
        self.inputs = inputs
        self._of_words = kind == "sed_words"
        self._golds = self._labels(source, golds)
        rates = self._of_words and dictionary is not None
        self._real = real_words(inputs, dictionary or ()) if rates else None

    def _labels(self, source: str, lines: Sequence[str]) -> Labels:
        if self._of_words:
            counts = [len(line.split()) for line in self.inputs]
            return labels(source, lines, counts, "one for each word of the input")
        return flags(source, lines)

    def score(self, predictions: Sequence[str], source: str, tell: Tell) -> Figures:
        check_count(source, predictions, len(self.inputs), "the input")
        found = score_labels(self._labels(source, predictions), self._golds, self._real)
        tell(len(predictions))
        accuracy = "word_accuracy" if self._of_words else "sequence_accuracy"
        figures = {**_of_counts(found.counts), accuracy: found.accuracy}
        if self._real is not None:
            figures |= {"real_word_rate": found.real_word_rate, "non_word_rate": found.non_word_rate}
        return figures


class _Corrections:
    """Texts without errors."""

    def __init__(self, inputs: Sequence[str], golds: Sequence[str], lower: Labels | None) -> None:
        self.inputs = inputs
        self._lower = lower
        self._texts, self._golds = _cased(inputs, lower), _cased(golds, lower)
        self._misspelt: list[Words] = []

    def score(self, predictions: Sequence[str], source: str, tell: Tell) -> Figures:
        check_count(source, predictions, len(self.inputs), "the input")
        check_texts(source, predictions, self.inputs)
        made = _cased(predictions, self._lower)
        score, distance = CorrectionScore(), DistanceScore()
        for start in range(0, len(made), _LINES_AT_ONCE):
            part = slice(start, start + _LINES_AT_ONCE)
            misspelt = self._misspelt_words(part)
            try:
                score += score_corrections(self._texts[part], made[part], self._golds[part], misspelt)
            except DataError as error:
                raise DataError(f"{source}:{start + 1}-{start + len(misspelt)}: {error}") from error
            distance += score_distances(made[part], self._golds[part])
            tell(len(misspelt))
        return {**_of_counts(score.counts), "sequence_f1": score.sequence_f1, "mned": distance.mean}

    def _misspelt_words(self, part: slice) -> Sequence[Words]:
        """Find out once what every prediction is compared with, part after part."""
        if len(self._misspelt) <= part.start:
            self._misspelt += misspelt_words(self._texts[part], self._golds[part])
        return self._misspelt[part]


class _Repair:
    """Texts whose white space is right."""

    def __init__(
        self, inputs: Sequence[str], golds: Sequence[str], source: str, lower: Labels | None
    ) -> None:
        self.inputs = inputs
        self._lower = lower
        self._texts, self._golds = _cased(inputs, lower), _cased(golds, lower)
        self._check(source, self._golds)

    def _check(self, source: str, lines: Sequence[str]) -> None:
        for number, (text, line) in enumerate(zip(self._texts, lines, strict=True), start=1):
            if not same_characters(text, line):
                raise DataError(
                    f"{source}:{number}: found {shortened(line)!r}, expected the characters of the input "
                    f"({shortened(text)!r}): only white space may differ"
                )

    def score(self, predictions: Sequence[str], source: str, tell: Tell) -> Figures:
        check_count(source, predictions, len(self.inputs), "the input")
        made = _cased(predictions, self._lower)
        self._check(source, made)
        score: WhitespaceScore = score_whitespace(self._texts, made, self._golds)
        tell(len(made))
        return {
            **_of_counts(score.counts),
            "sequence_f1": score.sequence_f1,
            "sequence_accuracy": score.sequence_accuracy,
        }


def _of_counts(counts: Counts) -> Figures:
    return {"f1": counts.f1, "precision": counts.precision, "recall": counts.recall}
