"""What must hold between the keys of an experiment in entity disambiguation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolkit.config.kinds.entities import (
    BUILT_NAMES,
    BUILT_PREFIX,
    SLICE_NAME,
    BiEncoder,
    CoMention,
    EntityMentions,
)
from toolkit.config.rules.book import Broken, rule
from toolkit.config.schema import Experiment
from toolkit.config.tree import suggest

#: The slice of all scored mentions, whose accuracy is the metric `accuracy`.
_WHOLE = "final_loss"


@rule("task.kind", "data.eval_slices", "data.slices")
def _slice_names(experiment: Experiment) -> Iterator[Broken]:
    data = experiment.data
    if not isinstance(data, EntityMentions):
        return
    for place, name in enumerate(data.eval_slices):
        key = ("data", "eval_slices", str(place))
        if name.startswith(BUILT_PREFIX) and name not in BUILT_NAMES:
            problem = f"found {name}, which is none of the built slices ({', '.join(BUILT_NAMES)})"
            yield Broken(key=key, problem=problem, hint=suggest(name, BUILT_NAMES))
        else:
            yield from _slice_name(key, name)
    for name in data.slices:
        key = ("data", "slices", name)
        yield from _slice_name(key, name)
        if name.startswith(BUILT_PREFIX):
            problem = f"found {name}, but names with {BUILT_PREFIX} are those of the built slices"
            yield Broken(key=key, problem=problem, hint="another name")


def _slice_name(key: tuple[str, ...], name: str) -> Iterator[Broken]:
    if not re.fullmatch(SLICE_NAME, name):
        problem = f"found {name!r}, expected a name of letters, digits, and _ . -"
        yield Broken(key=key, problem=problem)
    elif name == _WHOLE:
        problem = f"the slice {_WHOLE} is that of all scored mentions, which is always there"
        yield Broken(key=key, problem=problem, hint="leave it out: its accuracy is the metric accuracy")


@rule("task.kind", "data.torso_above", "data.head_above")
def _thresholds(experiment: Experiment) -> Iterator[Broken]:
    data = experiment.data
    if isinstance(data, EntityMentions) and data.torso_above >= data.head_above:
        problem = f"found {data.torso_above}, expected less than data.head_above ({data.head_above})"
        yield Broken(key=("data", "torso_above"), problem=problem)


@rule("task.kind", "data.title", "data.types", "data.relations", "data.description")
def _entity_text(experiment: Experiment) -> Iterator[Broken]:
    data, parts = experiment.data, ("title", "types", "relations", "description")
    if isinstance(data, EntityMentions) and not any(getattr(data, part) for part in parts):
        problem = f"an entity's text would be empty: {', '.join(parts)} are all false"
        yield Broken(key=("data",), problem=problem, hint="set one of them to true")


@rule("task.mask_title", "model.kind", "model.entity_vectors")
def _masked_titles(experiment: Experiment) -> Iterator[Broken]:
    model = experiment.model
    is_fixed = isinstance(model, CoMention) or getattr(model, "entity_vectors", "") == "cached"
    if getattr(experiment.task, "mask_title", False) and is_fixed:
        problem = (
            "found true, but the entities' texts are read once for all, so nothing can be hidden in them"
        )
        yield Broken(
            key=("task", "mask_title"), problem=problem, hint="model.entity_vectors: encode, or false"
        )


@rule("model.kind", "model.share", "model.context_layers", "model.entity_layers", "model.entity_vectors")
def _shared_layers(experiment: Experiment) -> Iterator[Broken]:
    model = experiment.model
    if not isinstance(model, BiEncoder) or not model.share or model.entity_vectors == "cached":
        return
    if model.context_layers != model.entity_layers:
        both = [count or "all" for count in (model.entity_layers, model.context_layers)]
        problem = f"found {both[0]} layers and {both[1]} in context_layers, but model.share makes one encoder"
        yield Broken(key=("model", "entity_layers"), problem=problem, hint="the same number, or share: false")


@rule("model.kind", "model.hidden", "model.heads")
def _heads(experiment: Experiment) -> Iterator[Broken]:
    model = experiment.model
    if isinstance(model, CoMention) and model.hidden % model.heads:
        problem = f"found {model.heads}, which does not divide model.hidden ({model.hidden})"
        yield Broken(key=("model", "heads"), problem=problem)
