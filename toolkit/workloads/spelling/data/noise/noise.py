"""Noise: turns a clean text into a training sample.

A noise draws from the generator only that it is given, and the generator of sample i is a pure function of
(seed, i): any number of workers, in any order, makes the same set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A text with errors and its target; white space separates the words of both.

    text    what the model reads
    target  the right text
    clean   the target that the noise `save` kept, if any
    spaced  the text before its white space was changed; None if it was not
    """

    text: str
    target: str
    clean: str | None = None
    spaced: str | None = None

    @classmethod
    def of(cls, text: str) -> Sample:
        """A clean text, which is its own target."""
        return cls(text=text, target=text)


class Noise(Protocol):
    """Something that changes a sample."""

    def apply(self, sample: Sample, random: np.random.Generator) -> Sample:
        """Return the changed sample; draw from the generator only."""
        ...


def generator(seed: int, number: int) -> np.random.Generator:
    """Return the generator of a sample: Philox with the key (seed, number), so that none overlap."""
    key = np.array([seed & _WORD, number & _WORD], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def noised(noise: Noise, texts: Iterable[str], seed: int, first: int = 0) -> Iterator[Sample]:
    """Yield a sample of each clean text; `first` is the number of the first text in the set."""
    for number, text in enumerate(texts, start=first):
        yield noise.apply(Sample.of(text), generator(seed, number))
