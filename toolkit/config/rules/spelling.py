"""What must hold between the keys of noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from toolkit.config.kinds.spelling import NOISES, noise_faults
from toolkit.config.rules.book import Broken, rule
from toolkit.config.schema import Experiment


@rule("task.kind", "data")
def _noise(experiment: Experiment) -> Iterator[Broken]:
    for each in fields(experiment.data):
        value = getattr(experiment.data, each.name)
        if isinstance(value, tuple(NOISES.values())):
            for key, problem, hint in noise_faults(value, ("data", each.name)):
                yield Broken(key=key, problem=problem, hint=hint)
