"""The noise of an experiment, applied to texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.workloads.spelling.config import noise as config
from toolkit.workloads.spelling.data.noise.misspellings import Misspellings
from toolkit.workloads.spelling.data.noise.noise import Sample, generator
from toolkit.workloads.spelling.data.noise.space_noise import part_of, respaced
from toolkit.workloads.spelling.data.noise.word_noise import WordNoise


class DescribedNoise:
    """The noise that a checked section describes.

    load  reads a file of misspellings; it is called once for each file

    Raises DataError if a file cannot be read.
    """

    def __init__(self, described: Any, load: Callable[[Path], Misspellings] = Misspellings.load) -> None:
        self._described = described
        listed = cache(load)
        self._words: dict[Any, WordNoise] = {}
        for _, each in config.noises_within(described):
            if isinstance(each, config.RealisticNoise):
                self._words[each] = WordNoise(each, listed(Path(each.misspellings)))
            elif isinstance(each, config.WordNoise):
                self._words[each] = WordNoise(each, Misspellings({}))

    def apply(self, sample: Sample, random: np.random.Generator) -> Sample:
        """Return the changed sample."""
        return self._applied(self._described, sample, random)

    def _applied(self, noise: Any, sample: Sample, random: np.random.Generator) -> Sample:
        match noise:
            case config.WordNoise():
                return self._words[noise].apply(sample, random)
            case config.WhitespaceNoise():
                return respaced(sample, noise, random)
            case config.SubstringNoise():
                return part_of(sample, noise.max_characters, random)
            case config.SaveNoise():
                return replace(sample, clean=sample.target)
            case config.ReplaceNoise():
                return replace(sample, target=sample.text)
            case config.ChainedNoise():
                for step in noise.steps:
                    sample = self._applied(step, sample, random)
                return sample
            case config.SwitchNoise():
                shares = np.cumsum(noise.weights or (1.0,) * len(noise.choices))
                chosen = int(np.searchsorted(shares, random.random() * shares[-1], side="right"))
                return self._applied(noise.choices[chosen], sample, random)
        return sample


def noised(noise: DescribedNoise, texts: Iterable[str], seed: int) -> Iterator[Sample]:
    """Yield a sample of each clean text."""
    for number, text in enumerate(texts):
        yield noise.apply(Sample.of(text), generator(seed, number))
