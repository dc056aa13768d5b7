"""From the noise of an experiment to noise that is applied."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.toolkit.nlp.sentences import TEXTS
from toolkit.errors import DataError
from toolkit.workloads.spelling.config import noise as config
from toolkit.workloads.spelling.data.noise.from_config import noise_of
from toolkit.workloads.spelling.data.noise.misspellings import Misspellings, write_misspellings
from toolkit.workloads.spelling.data.noise.noise import Chained, Nothing, Replace, Save, Switch, noised
from toolkit.workloads.spelling.data.noise.space_noise import Substring, WhitespaceNoise
from toolkit.workloads.spelling.data.noise.word_noise import WordNoise


@pytest.fixture
def listed(tmp_path: Path) -> str:
    write_misspellings(tmp_path / "m.json", {"the": ["teh"]})
    return str(tmp_path / "m.json")


def test_every_kind_of_the_table_can_be_built(listed):
    for cls in config.NOISES.values():
        names = {each.name for each in dataclasses.fields(cls)}
        given = {"misspellings": listed, "steps": (config.NoNoise(),), "choices": (config.NoNoise(),)}
        noise = noise_of(cls(**{name: value for name, value in given.items() if name in names}))
        assert len(list(noised(noise, TEXTS, 1))) == len(TEXTS)


@pytest.mark.parametrize(
    "described, noise",
    [
        (config.NoNoise(), Nothing()),
        (
            config.ArtificialNoise(rate=0.3, more_edits=0.1, at_least=2),
            WordNoise(rate=0.3, artificial=1, more_edits=0.1, at_least=2),
        ),
        (
            config.WhitespaceNoise(none=0, every=0.5, insert=0.2, delete=0.3),
            WhitespaceNoise(none=0, every=0.5, insert=0.2, delete=0.3),
        ),
        (config.SubstringNoise(max_characters=9), Substring(max_characters=9)),
        (
            config.ChainedNoise(steps=(config.SaveNoise(), config.ReplaceNoise())),
            Chained(steps=(Save(), Replace())),
        ),
        (
            config.SwitchNoise(choices=(config.NoNoise(), config.SaveNoise())),
            Switch(choices=(Nothing(), Save()), weights=(1, 1)),
        ),
        (
            config.SwitchNoise(choices=(config.NoNoise(), config.SaveNoise()), weights=(1, 3)),
            Switch(choices=(Nothing(), Save()), weights=(1, 3)),
        ),
    ],
)
def test_what_is_described_is_built(described, noise):
    assert _comparable(noise_of(described)) == _comparable(noise)


def _comparable(noise):
    return dataclasses.replace(noise, misspellings=None) if isinstance(noise, WordNoise) else noise


def test_noise_of_words_has_the_listed_misspellings(listed):
    realistic = noise_of(config.RealisticNoise(misspellings=listed, rate=0.4, at_least=1))
    assert isinstance(realistic, WordNoise)
    assert realistic.misspellings is not None
    assert (realistic.rate, realistic.artificial, realistic.at_least) == (0.4, 0, 1)
    assert realistic.misspellings.of("the") == ("teh",)
    mixed = noise_of(config.MixedNoise(misspellings=listed, artificial=0.3, more_edits=0))
    assert isinstance(mixed, WordNoise)
    assert (mixed.rate, mixed.artificial, mixed.more_edits) == (0.2, 0.3, 0)


def test_a_file_is_read_once(listed, monkeypatch):
    reads = []
    load = Misspellings.load
    monkeypatch.setattr(Misspellings, "load", lambda path: reads.append(path) or load(path))
    mixed = config.MixedNoise(misspellings=listed)
    switch = noise_of(config.SwitchNoise(choices=(mixed, config.ChainedNoise(steps=(mixed, mixed)))))
    assert reads == [Path(listed)]
    assert isinstance(switch, Switch)
    first, second = switch.choices
    assert isinstance(first, WordNoise)
    assert isinstance(second, Chained)
    assert isinstance(second.steps[1], WordNoise)
    assert first.misspellings is second.steps[1].misspellings


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.json cannot be read"):
        noise_of(config.MixedNoise(misspellings=str(tmp_path / "none.json")))
