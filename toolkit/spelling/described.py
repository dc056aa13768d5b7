"""From the noise that an experiment describes to noise that can be applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from toolkit.config.kinds import spelling as config
from toolkit.spelling.misspellings import Misspellings
from toolkit.spelling.noise import Chained, Noise, Nothing, Replace, Save, Switch
from toolkit.spelling.space_noise import Substring, WhitespaceNoise
from toolkit.spelling.word_noise import WordNoise


def noise_of(described: Any) -> Noise:
    """Return the noise that a checked section of an experiment describes; reads files of misspellings once.

    Raises DataError where one cannot be read.
    """
    return _Builder().noise(described)


class _Builder:
    def __init__(self) -> None:
        self._loaded: dict[str, Misspellings] = {}
        self._makers: Mapping[type, Callable[[Any], Noise]] = {
            config.NoNoise: lambda _: Nothing(),
            config.SaveNoise: lambda _: Save(),
            config.ReplaceNoise: lambda _: Replace(),
            config.ArtificialNoise: self._words,
            config.RealisticNoise: self._words,
            config.MixedNoise: self._words,
            config.WhitespaceNoise: _whitespace,
            config.SubstringNoise: lambda of: Substring(max_characters=of.max_characters),
            config.ChainedNoise: lambda of: Chained(steps=tuple(map(self.noise, of.steps))),
            config.SwitchNoise: self._switch,
        }

    def noise(self, described: Any) -> Noise:
        return self._makers[type(described)](described)

    def _words(self, of: Any) -> Noise:
        make = partial(WordNoise, rate=of.rate, at_least=of.at_least)
        if isinstance(of, config.ArtificialNoise):
            return make(artificial=1.0, more_edits=of.more_edits)
        misspellings = self._misspellings(of.misspellings)
        if isinstance(of, config.RealisticNoise):
            return make(artificial=0.0, misspellings=misspellings)
        return make(artificial=of.artificial, more_edits=of.more_edits, misspellings=misspellings)

    def _misspellings(self, path: str) -> Misspellings:
        if path not in self._loaded:
            self._loaded[path] = Misspellings.load(Path(path))
        return self._loaded[path]

    def _switch(self, of: config.SwitchNoise) -> Noise:
        weights = of.weights or (1.0,) * len(of.choices)
        return Switch(choices=tuple(map(self.noise, of.choices)), weights=weights)


def _whitespace(of: config.WhitespaceNoise) -> Noise:
    return WhitespaceNoise(none=of.none, every=of.every, insert=of.insert, delete=of.delete)
