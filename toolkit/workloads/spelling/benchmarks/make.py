"""Make benchmarks: files of texts with errors and files of the right answers, to score any system.

<root>/<task>/<group>/<split>/corrupt.txt    one text per line
                              correct.txt    sed_words: 0 or 1 for each word of the line, 1 an error;
                                             sed_sequence: 0 or 1; else the right text
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.errors import DataError
from toolkit.files import open_atomic
from toolkit.workloads.spelling.config.data import CORRECT, CORRUPT
from toolkit.workloads.spelling.config.noise import (
    ChainedNoise,
    MixedNoise,
    NoNoise,
    ReplaceNoise,
    SwitchNoise,
    WhitespaceNoise,
)
from toolkit.workloads.spelling.data.noise.from_config import Noise, noise_of, noised
from toolkit.workloads.spelling.data.noise.misspellings import Misspellings
from toolkit.workloads.spelling.data.noise.noise import Sample
from toolkit.workloads.spelling.data.texts.words import word_labels

#: Share of misspelt words, for all tasks but sed_sequence.
RATE = 0.2
#: The same for the texts of sed_sequence that have errors; half of its texts are clean.
RATE_OF_SEQUENCES = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task: the noise of its texts, and a function that returns the right answer as a line."""

    noise: Noise
    gold: Callable[[Sample], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The size of a benchmark.

    errors  words that differ from the right text; None if the white space has errors
    """

    lines: int
    lines_with_errors: int
    words: int
    errors: int | None


def tasks_of(artificial: float, misspellings: Misspellings, rate: float = RATE) -> dict[str, Task]:
    """Return the tasks by name.

    artificial  share of the errors that are edits of letters
    rate        share of misspelt words, for all tasks but sed_sequence
    """

    def noise(described: object) -> Noise:
        return noise_of(described, lambda path: misspellings)

    words = MixedNoise(rate=rate, artificial=artificial, misspellings="")
    some = replace(words, rate=RATE_OF_SEQUENCES, at_least=1)
    half = SwitchNoise(choices=(NoNoise(), some))
    # The target keeps the misspelt words, because only white space is to be repaired.
    spaces = ChainedNoise(steps=(words, ReplaceNoise(), WhitespaceNoise()))
    return {
        "sed_words": Task(noise=noise(words), gold=_labels),
        "sed_sequence": Task(noise=noise(half), gold=lambda sample: str(int(sample.text != sample.target))),
        "sec": Task(noise=noise(words), gold=lambda sample: sample.target),
        "tokenization_repair": Task(noise=noise(spaces), gold=lambda sample: sample.target),
    }


def _labels(sample: Sample) -> str:
    return " ".join(map(str, word_labels(sample.text, sample.target)))


def write_benchmark(folder: Path, task: Task, texts: Iterable[str], seed: int) -> Size:
    """Write corrupt.txt and correct.txt of clean texts into a folder; equal seeds make equal files.

    Raises DataError if the folder already holds a benchmark, because predictions may belong to it.
    """
    if (folder / CORRUPT).exists():
        raise DataError(f"{folder} holds a benchmark already; remove it, or name another group or split")
    folder.mkdir(parents=True, exist_ok=True)
    lines = lines_with_errors = words = 0
    errors: int | None = 0
    with ExitStack() as files:
        # corrupt.txt is moved into place last: a folder without it is not a benchmark.
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
            raise DataError("there are no texts for the benchmark")
    return Size(lines=lines, lines_with_errors=lines_with_errors, words=words, errors=errors)
