"""Sheets: the texts of a benchmark with the right answers; predictions are scored on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from toolkit.errors import DataError, UserError
from toolkit.system.output.few import shortened
from toolkit.workloads.spelling.benchmarks.lines import Labels, check_count, check_texts, labels, read_lines
from toolkit.workloads.spelling.data.texts.features import RealWords
from toolkit.workloads.spelling.data.texts.repairs import differs_in_space
from toolkit.workloads.spelling.metrics.correction import CorrectionScore, misspelt_words, score_corrections
from toolkit.workloads.spelling.metrics.detection import score_labels
from toolkit.workloads.spelling.metrics.edits import Words
from toolkit.workloads.spelling.metrics.whitespace import score_whitespace

Figures = dict[str, float]
#: Called several times, with the number of lines that were scored since the last call.
Advance = Callable[[int], object]

_Lines = Sequence[str]
_Score = Callable[[_Lines, str, Advance], Figures]

_LINES_AT_ONCE = 2000
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Sheet:
    """Texts, and a function that compares predictions for them with the right answers."""

    inputs: _Lines
    figures: _Score

    def score(self, predictions: _Lines, source: str, advance: Advance) -> Figures:
        """Return the metrics of the kind by name. Raises DataError naming source and line."""
        check_count(source, predictions, len(self.inputs), "the input")
        return self.figures(predictions, source, advance)


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
        return Sheet(inputs, _detection(kind, inputs, golds, str(correct), dictionary))
    lower: Labels = np.full(len(inputs), bool(lowercase))
    if isinstance(lowercase, Path):
        marks = read_lines(lowercase)
        check_count(str(lowercase), marks, len(inputs), corrupt.name)
        lower = labels(str(lowercase), marks, [1] * len(marks), "one for the line")

    def cased(lines: _Lines) -> _Lines:
        return [line.lower() if flag else line for line, flag in zip(lines, lower, strict=True)]

    of_texts = _corrections if kind == "sec" else _repair
    return Sheet(inputs, of_texts(inputs, cased(inputs), cased(golds), str(correct), cased))


def _detection(
    kind: str, inputs: _Lines, golds: _Lines, gold_source: str, dictionary: Collection[str] | None
) -> _Score:
    """Compare labels of words, or of lines."""
    of_words, real = kind == "sed_words", None
    what = "one for each word of the input" if of_words else "one for the line"
    counts = [len(line.split()) if of_words else 1 for line in inputs]
    right = labels(gold_source, golds, counts, what)
    if of_words and dictionary is not None:
        real = RealWords(dictionary).of([word for line in inputs for word in line.split()])

    def figures(predictions: _Lines, source: str, advance: Advance) -> Figures:
        found = score_labels(labels(source, predictions, counts, what), right, real)
        advance(len(predictions))
        accuracy = {"word_accuracy" if of_words else "sequence_accuracy": found.accuracy}
        return found.figures() | accuracy | ({} if real is None else found.rates())

    return figures


def _corrections(
    inputs: _Lines, texts: _Lines, golds: _Lines, gold_source: str, cased: Callable[[_Lines], _Lines]
) -> _Score:
    """Compare corrected texts."""
    #: The misspelt words of the lines so far, computed once for all predictions.
    misspelt: list[Words] = []

    def figures(predictions: _Lines, source: str, advance: Advance) -> Figures:
        check_texts(source, predictions, inputs)
        made, score = cased(predictions), CorrectionScore()
        for start in range(0, len(made), _LINES_AT_ONCE):
            part = slice(start, start + _LINES_AT_ONCE)
            lines = f"{start + 1}-{min(part.stop, len(made))}"
            if len(misspelt) <= start:
                with _of_lines(gold_source, lines):
                    misspelt.extend(misspelt_words(texts[part], golds[part]))
            with _of_lines(source, lines):
                score += score_corrections(texts[part], made[part], golds[part], misspelt[part])
            advance(len(made[part]))
        return {**score.counts.figures(), "sequence_f1": score.sequence_f1, "mned": score.mned}

    return figures


@contextmanager
def _of_lines(source: str, lines: str) -> Iterator[None]:
    """Name these lines of a file in a DataError."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{source}:{lines}: {error}") from error


def _repair(
    inputs: _Lines, texts: _Lines, golds: _Lines, gold_source: str, cased: Callable[[_Lines], _Lines]
) -> _Score:
    """Compare texts that differ in white space only."""

    def checked(source: str, lines: _Lines) -> _Lines:
        for number, (text, line) in enumerate(zip(texts, lines, strict=True), start=1):
            if not differs_in_space(text, line):
                raise DataError(
                    f"{source}:{number}: found {shortened(line, _SHOWN)!r}, expected the characters of the "
                    f"input ({shortened(text, _SHOWN)!r}): only white space may differ"
                )
        return lines

    right = checked(gold_source, golds)

    def figures(predictions: _Lines, source: str, advance: Advance) -> Figures:
        score = score_whitespace(texts, checked(source, cased(predictions)), right)
        advance(len(predictions))
        lines = {"sequence_f1": score.sequence_f1, "sequence_accuracy": score.sequence_accuracy}
        return score.counts.figures() | lines

    return figures
