"""The noise of an experiment, as it is applied."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.toolkit.nlp.sentences import TEXTS
from toolkit.errors import DataError
from toolkit.workloads.spelling.config import noise as config
from toolkit.workloads.spelling.data.noise.from_config import DescribedNoise
from toolkit.workloads.spelling.data.noise.misspellings import Misspellings, write_misspellings
from toolkit.workloads.spelling.data.noise.noise import noised
from toolkit.workloads.spelling.data.noise.word_noise import WordNoise


@pytest.fixture
def listed(tmp_path: Path) -> str:
    write_misspellings(tmp_path / "m.json", {"the": ["teh"]})
    return str(tmp_path / "m.json")


def test_every_kind_of_the_table_can_be_applied(listed):
    for cls in config.NOISES.values():
        names = {each.name for each in dataclasses.fields(cls)}
        given = {"misspellings": listed, "steps": (config.NoNoise(),), "choices": (config.NoNoise(),)}
        noise = DescribedNoise(cls(**{name: value for name, value in given.items() if name in names}))
        assert len(list(noised(noise, TEXTS, 1))) == len(TEXTS)


@pytest.mark.parametrize(
    "described, noise",
    [
        (
            lambda path: config.ArtificialNoise(rate=0.3, more_edits=0.1, at_least=2),
            {"rate": 0.3, "artificial": 1, "more_edits": 0.1, "at_least": 2},
        ),
        (
            lambda path: config.RealisticNoise(misspellings=path, rate=0.4, at_least=1),
            {"rate": 0.4, "artificial": 0, "at_least": 1},
        ),
        (
            lambda path: config.MixedNoise(misspellings=path, artificial=0.3, more_edits=0),
            {"rate": 0.2, "artificial": 0.3, "more_edits": 0},
        ),
    ],
)
def test_words_are_misspelt_as_is_described(described, noise, listed):
    made = DescribedNoise(described(listed))
    expected = WordNoise(**noise, misspellings=Misspellings({"the": ["teh"]}))
    texts = [*TEXTS, "the mill by the river"] * 20
    assert list(noised(made, texts, 3)) == list(noised(expected, texts, 3))


def test_a_file_is_read_once():
    reads = []
    mixed = config.MixedNoise(misspellings="m.json")
    other = dataclasses.replace(mixed, rate=0.1)
    steps = config.ChainedNoise(steps=(mixed, other))
    DescribedNoise(
        config.SwitchNoise(choices=(mixed, steps)), lambda path: reads.append(path) or Misspellings({})
    )
    assert reads == [Path("m.json")]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.json cannot be read"):
        DescribedNoise(config.MixedNoise(misspellings=str(tmp_path / "none.json")))
