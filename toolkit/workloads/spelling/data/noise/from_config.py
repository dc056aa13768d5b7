"""The noise of an experiment, applied to texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.workloads.spelling.config import noise as config
from toolkit.workloads.spelling.data.noise.misspellings import Misspellings
from toolkit.workloads.spelling.data.noise.noise import Sample
from toolkit.workloads.spelling.data.noise.space_noise import part_of, respaced
from toolkit.workloads.spelling.data.noise.word_noise import WordNoise


class DescribedNoise:
    """The noise of a checked section.

    load  reads a file of misspellings; called once for each
    Raises DataError where one cannot be read.
    """

    def __init__(self, described: Any, load: Callable[[Path], Misspellings] = Misspellings.load) -> None:
        self._described = described
        listed = cache(load)
        self._words = {of: _word_noise(of, listed) for of in _word_noises(described)}

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


def _word_noises(noise: Any) -> Iterator[config.WordNoise]:
    if isinstance(noise, config.WordNoise):
        yield noise
    for part in getattr(noise, "parts", ()):
        yield from _word_noises(part)


def _word_noise(of: Any, load: Callable[[Path], Misspellings]) -> WordNoise:
    lists = isinstance(of, config.RealisticNoise)
    return WordNoise(
        rate=of.rate,
        at_least=of.at_least,
        artificial=getattr(of, "artificial", 0.0 if lists else 1.0),
        more_edits=getattr(of, "more_edits", 0.2),
        misspellings=load(Path(of.misspellings)) if lists else Misspellings({}),
    )
