"""The noise of an experiment, as it is applied."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tests.toolkit.nlp.sentences import TEXTS
from toolkit.workloads.spelling.config import noise as config
from toolkit.workloads.spelling.data.noise.from_config import noise_of, noised
from toolkit.workloads.spelling.data.noise.misspellings import Misspellings, write_misspellings


def test_every_kind_of_noise_can_be_applied(tmp_path):
    write_misspellings(tmp_path / "m.json", {"the": ["teh"]})
    parts = (config.NoNoise(),)
    given = {"misspellings": str(tmp_path / "m.json"), "steps": parts, "choices": parts}
    for cls in config.NOISES.values():
        names = {each.name for each in dataclasses.fields(cls)}
        noise = noise_of(cls(**{name: value for name, value in given.items() if name in names}))
        assert len(list(noised(noise, TEXTS, 1))) == len(TEXTS)


def test_a_file_of_misspellings_is_read_once():
    reads = []
    mixed = config.MixedNoise(misspellings="m.json")
    other = dataclasses.replace(mixed, rate=0.1)
    steps = config.ChainedNoise(steps=(mixed, other))
    noise_of(config.SwitchNoise(choices=(mixed, steps)), lambda path: reads.append(path) or Misspellings({}))
    assert reads == [Path("m.json")]
