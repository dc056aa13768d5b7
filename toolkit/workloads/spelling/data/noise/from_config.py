"""Build noise that can be applied from the `noise` section of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from toolkit.workloads.spelling.config import noise as config
from toolkit.workloads.spelling.data.noise.misspellings import Misspellings
from toolkit.workloads.spelling.data.noise.noise import Chained, Noise, Nothing, Replace, Save, Switch
from toolkit.workloads.spelling.data.noise.space_noise import Substring, WhitespaceNoise
from toolkit.workloads.spelling.data.noise.word_noise import WordNoise


def noise_of(described: Any) -> Noise:
    """Build the noise of a checked section; reads each file of misspellings once.

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
        lists = isinstance(of, config.RealisticNoise)
        return WordNoise(
            rate=of.rate,
            at_least=of.at_least,
            artificial=getattr(of, "artificial", 0.0 if lists else 1.0),
            more_edits=getattr(of, "more_edits", 0.2),
            misspellings=self._misspellings(of.misspellings) if lists else Misspellings({}),
        )

    def _misspellings(self, path: str) -> Misspellings:
        if path not in self._loaded:
            self._loaded[path] = Misspellings.load(Path(path))
        return self._loaded[path]

    def _switch(self, of: config.SwitchNoise) -> Noise:
        weights = of.weights or (1.0,) * len(of.choices)
        return Switch(choices=tuple(map(self.noise, of.choices)), weights=weights)


def _whitespace(of: config.WhitespaceNoise) -> Noise:
    return WhitespaceNoise(none=of.none, every=of.every, insert=of.insert, delete=of.delete)
