"""Rules between the keys of an experiment in entity disambiguation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolkit.config.schema import Experiment
from toolkit.data.sources.split_files import one_file_or_splits
from toolkit.system.output.nearest import suggest
from toolkit.workload import Violation, rule
from toolkit.workloads.entity_disambiguation.config import (
    BUILT_PREFIX,
    BUILT_SLICES,
    SLICE_NAME,
    WHOLE_SLICE,
    BiEncoder,
    CoMention,
)


@rule("task.kind", "data.eval_slices", "data.slices")
def _slice_names(experiment: Experiment) -> Iterator[Violation]:
    data = experiment.data
    for place, name in enumerate(data.eval_slices):
        key = ("data", "eval_slices", str(place))
        if name.startswith(BUILT_PREFIX) and name not in BUILT_SLICES:
            problem = f"found {name}, which is no built-in slice ({', '.join(BUILT_SLICES)})"
            yield Violation(key=key, problem=problem, hint=suggest(name, BUILT_SLICES))
        else:
            yield from _slice_name(key, name)
    for name in data.slices:
        key = ("data", "slices", name)
        yield from _slice_name(key, name)
        if name.startswith(BUILT_PREFIX):
            problem = f"found {name}, but only built slices have names with {BUILT_PREFIX}"
            yield Violation(key=key, problem=problem, hint="another name")


def _slice_name(key: tuple[str, ...], name: str) -> Iterator[Violation]:
    if not re.fullmatch(SLICE_NAME, name):
        problem = f"found {name!r}, expected a name of letters, digits, and _ . -"
        yield Violation(key=key, problem=problem)
    elif name == WHOLE_SLICE:
        problem = f"the slice {WHOLE_SLICE} of all scored mentions always exists"
        yield Violation(key=key, problem=problem, hint="leave it out: its accuracy is the metric accuracy")


@rule("task.kind", "data.torso_above", "data.head_above")
def _thresholds(experiment: Experiment) -> Iterator[Violation]:
    data = experiment.data
    if data.torso_above > data.head_above:
        problem = f"found {data.torso_above}, expected at most data.head_above ({data.head_above})"
        yield Violation(key=("data", "torso_above"), problem=problem)


@rule("task.kind", "data.title", "data.types", "data.relations", "data.description")
def _entity_text(experiment: Experiment) -> Iterator[Violation]:
    data, parts = experiment.data, ("title", "types", "relations", "description")
    if not any(getattr(data, part) for part in parts):
        problem = f"an entity's text would be empty: {', '.join(parts)} are all false"
        yield Violation(key=("data",), problem=problem, hint="set one of them to true")


@rule("task.mask_title", "model.kind", "model.entity_vectors")
def _masked_titles(experiment: Experiment) -> Iterator[Violation]:
    model = experiment.model
    is_fixed = isinstance(model, CoMention) or getattr(model, "entity_vectors", "") == "cached"
    if experiment.task.mask_title and is_fixed:
        problem = "found true, but the texts of entities are read only once, so nothing can be hidden in them"
        hint = "model.entity_vectors: encode, or false"
        yield Violation(key=("task", "mask_title"), problem=problem, hint=hint)


@rule("model.kind", "model.share", "model.context_layers", "model.entity_layers", "model.entity_vectors")
def _shared_layers(experiment: Experiment) -> Iterator[Violation]:
    model = experiment.model
    if not isinstance(model, BiEncoder) or not model.share or model.entity_vectors == "cached":
        return
    if model.context_layers != model.entity_layers:
        both = [count or "all" for count in (model.entity_layers, model.context_layers)]
        problem = f"found {both[0]} layers and {both[1]} in context_layers, but model.share makes one encoder"
        hint = "the same number, or share: false"
        yield Violation(key=("model", "entity_layers"), problem=problem, hint=hint)


@rule("model.kind", "model.hidden", "model.heads")
def _heads(experiment: Experiment) -> Iterator[Violation]:
    model = experiment.model
    if isinstance(model, CoMention) and model.hidden % model.heads:
        problem = f"found {model.heads}, which does not divide model.hidden ({model.hidden})"
        yield Violation(key=("model", "heads"), problem=problem)


RULES = (one_file_or_splits, _slice_names, _thresholds, _entity_text, _masked_titles, _shared_layers, _heads)
