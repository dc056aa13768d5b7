"""What must hold between the keys of noise and of texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from toolkit.config.kinds.spelling import NOISES, SpellingTexts, noise_faults
from toolkit.config.rules.book import Broken, rule
from toolkit.config.schema import Experiment


@rule("task.kind", "data")
def _noise(experiment: Experiment) -> Iterator[Broken]:
    for each in fields(experiment.data):
        value = getattr(experiment.data, each.name)
        if isinstance(value, tuple(NOISES.values())):
            for key, problem, hint in noise_faults(value, ("data", each.name)):
                yield Broken(key=key, problem=problem, hint=hint)


@rule("task.kind", "data.path", "data.datasets", "data.dataset_limits", "data.val_splits", "data.validation")
def _texts(experiment: Experiment) -> Iterator[Broken]:
    data = experiment.data
    if not isinstance(data, SpellingTexts):
        return
    if data.path is not None and data.datasets is not None:
        problem = "found path together with datasets, expected one of them"
        yield Broken(key=("data", "path"), problem=problem)
        return
    names = data.datasets if data.path is None else (data.path,)
    if not names:
        yield Broken(key=("data", "datasets"), problem="no file is given, expected at least one data set")
        return
    for name in ("dataset_limits", "val_splits"):
        values = getattr(data, name)
        if values is not None and len(values) != len(names):
            problem = f"found {len(values)}, expected one for each of the {len(names)} data sets"
            yield Broken(key=("data", name), problem=problem)
    if data.val_splits is not None and data.validation is not None:
        problem = "found val_splits together with validation, expected one of them"
        yield Broken(key=("data", "val_splits"), problem=problem)


@rule("task.kind", "data.max_length", "model.max_length")
def _lengths(experiment: Experiment) -> Iterator[Broken]:
    data, most = experiment.data, getattr(experiment.model, "max_length", None)
    if isinstance(data, SpellingTexts) and most is not None and data.max_length > most:
        problem = f"found {data.max_length}, but the model reads {most} tokens (model.max_length)"
        yield Broken(key=("data", "max_length"), problem=problem)
