"""Benchmarks: files of texts with errors and of what is right, which every system is scored on.

<root>/<task>/<group>/<split>/corrupt.txt    a text a line
                              correct.txt    sed_words: 0 or 1 for each word of the line, 1 an error;
                                             sed_sequence: 0 or 1; else the right text
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import DataError
from toolkit.files import open_atomic
from toolkit.spelling.misspellings import Misspellings
from toolkit.spelling.noise import Chained, Noise, Nothing, Replace, Sample, Switch, noised
from toolkit.spelling.space_noise import WhitespaceNoise
from toolkit.spelling.word_noise import WordNoise
from toolkit.spelling.words import word_labels

CORRUPT, CORRECT = "corrupt.txt", "correct.txt"

#: Share of misspelt words in texts whose words are to be found or corrected, and in those that are to be
#: found as a whole, of which half are clean.
RATE, RATE_OF_SEQUENCES = 0.2, 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task: the noise of its texts, and the line that says what is right."""

    noise: Noise
    gold: Callable[[Sample], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a benchmark holds.

    errors  words that are not those of the right text; None where white space is what is wrong
    """

    lines: int
    lines_with_errors: int
    words: int
    errors: int | None


def tasks_of(artificial: float, misspellings: Misspellings, rate: float = RATE) -> dict[str, Task]:
    """Return the tasks with errors of which the share `artificial` are edits of letters.

    rate  share of misspelt words, for all but sed_sequence
    """
    words = WordNoise(rate=rate, artificial=artificial, misspellings=misspellings)
    some = WordNoise(rate=RATE_OF_SEQUENCES, artificial=artificial, misspellings=misspellings, at_least=1)
    half = Switch(choices=(Nothing(), some), weights=(1, 1))
    # What is misspelt stays so: white space is all that is to be repaired.
    spaces = Chained(steps=(words, Replace(), WhitespaceNoise()))
    return {
        "sed_words": Task(noise=words, gold=_labels),
        "sed_sequence": Task(noise=half, gold=lambda sample: str(int(sample.text != sample.target))),
        "sec": Task(noise=words, gold=lambda sample: sample.target),
        "tokenization_repair": Task(noise=spaces, gold=lambda sample: sample.target),
    }


def _labels(sample: Sample) -> str:
    return " ".join(map(str, word_labels(sample.text, sample.target)))


def write_benchmark(folder: Path, task: Task, texts: Iterable[str], seed: int) -> Size:
    """Write corrupt.txt and correct.txt of clean texts into a folder; the same for the same seed.

    Raises DataError where there is one already: predictions may belong to it.
    """
    if (folder / CORRUPT).exists():
        raise DataError(f"{folder} holds a benchmark already; remove it, or name another group or split")
    folder.mkdir(parents=True, exist_ok=True)
    lines = lines_with_errors = words = 0
    errors: int | None = 0
    with ExitStack() as files:
        # The corrupt texts come last: without them there is no benchmark.
        corrupt, correct = (files.enter_context(open_atomic(folder / name)) for name in (CORRUPT, CORRECT))
        for sample in noised(task.noise, texts, seed):
            corrupt.write(sample.text + "\n")
            correct.write(task.gold(sample) + "\n")
            labels = word_labels(sample.text, sample.target)
            lines += 1
            lines_with_errors += sample.text != sample.target
            words += len(labels)
            errors = None if errors is None or sample.spaced is not None else errors + sum(labels)
        if not lines:
            raise DataError("there are no texts to make a benchmark of")
    return Size(lines=lines, lines_with_errors=lines_with_errors, words=words, errors=errors)
