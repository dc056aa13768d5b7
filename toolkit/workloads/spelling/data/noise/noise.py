"""The sample that a noise changes, and the random numbers of each sample.

A noise draws only from the given generator. The generator of sample i is a pure function of (seed, i).
So the set is the same for any number of workers, in any order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A text with errors and its target; white space separates the words of both.

    text    what the model reads
    target  the right text
    clean   the target that the noise `save` kept, if any
    spaced  the text before its white space was changed; None if it was not changed
    """

    text: str
    target: str
    clean: str | None = None
    spaced: str | None = None

    @classmethod
    def of(cls, text: str) -> Sample:
        """A clean text, which is its own target."""
        return cls(text=text, target=text)


def generator(seed: int, number: int) -> np.random.Generator:
    """Return the generator of a sample: Philox with the key (seed, number), so that no two overlap."""
    key = np.array([seed & _WORD, number & _WORD], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))
