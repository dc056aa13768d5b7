"""The noise of an experiment, applied to texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial, reduce
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.workloads.spelling.config import noise as config
from toolkit.workloads.spelling.data.noise.misspellings import Misspellings
from toolkit.workloads.spelling.data.noise.noise import Sample, generator
from toolkit.workloads.spelling.data.noise.space_noise import part_of, respaced
from toolkit.workloads.spelling.data.noise.word_noise import WordNoise

Noise = Callable[[Sample, np.random.Generator], Sample]


def noise_of(described: Any, load: Callable[[Path], Misspellings] = Misspellings.load) -> Noise:
    """Return the function that puts the noise of a checked section into a sample.

    load  reads a file of misspellings; it is called once for each file

    Raises DataError if a file cannot be read.
    """
    inner = partial(noise_of, load=cache(load))
    match described:
        case config.RealisticNoise():
            return WordNoise(described, load(Path(described.misspellings))).apply
        case config.WordNoise():
            return WordNoise(described, Misspellings({})).apply
        case config.WhitespaceNoise():
            return lambda sample, random: respaced(sample, described, random)
        case config.SubstringNoise():
            return lambda sample, random: part_of(sample, described.max_characters, random)
        case config.SaveNoise():
            return lambda sample, _: replace(sample, clean=sample.target)
        case config.ReplaceNoise():
            return lambda sample, _: replace(sample, target=sample.text)
        case config.ChainedNoise():
            steps = [*map(inner, described.steps)]
            return lambda sample, random: reduce(lambda made, step: step(made, random), steps, sample)
        case config.SwitchNoise():
            return _one_of([*map(inner, described.choices)], described.weights)
    return lambda sample, _: sample


def _one_of(choices: Sequence[Noise], weights: Sequence[float] | None) -> Noise:
    shares = np.cumsum(weights or (1.0,) * len(choices))

    def applied(sample: Sample, random: np.random.Generator) -> Sample:
        chosen = int(np.searchsorted(shares, random.random() * shares[-1], side="right"))
        return choices[chosen](sample, random)

    return applied


def noised(noise: Noise, texts: Iterable[str], seed: int) -> Iterator[Sample]:
    """Yield a sample of each clean text."""
    for number, text in enumerate(texts):
        yield noise(Sample.of(text), generator(seed, number))
