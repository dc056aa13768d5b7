"""Rules between the keys of an experiment in text classification."""

from __future__ import annotations

import math
from collections.abc import Iterator

from toolkit.config.schema import Experiment
from toolkit.data.sources.split_files import SPLITS, one_file_or_splits
from toolkit.system.output.nearest import suggest
from toolkit.workload import Violation, rule
from toolkit.workloads.text_classification.config import BALANCED


@rule("data.splits")
def _splits(experiment: Experiment) -> Iterator[Violation]:
    splits = experiment.data.splits
    for name, share in splits.items():
        if name not in SPLITS:
            hint = suggest(name, SPLITS)
            yield Violation(key=("data", "splits", name), problem="no such split", hint=hint)
        elif not 0 <= share < math.inf:
            problem = f"found the share {share}, expected a number of 0 or more"
            yield Violation(key=("data", "splits", name), problem=problem)
    needed = ("train", "validation")
    if missing := [name for name in needed if name not in splits]:
        problem = f"found no share for {' and '.join(missing)}: given shares replace all defaults"
        hint = "give all of them, such as {train: 0.7, validation: 0.1, test: 0.2}"
        yield Violation(key=("data", "splits"), problem=problem, hint=hint)
    for name in needed:
        if splits.get(name) == 0:
            yield Violation(key=("data", "splits", name), problem="this split needs a share above 0")


@rule("data.tokenizer", "data.tokenizer_path", "model.kind", "model.vectors")
def _tokenizer(experiment: Experiment) -> Iterator[Violation]:
    kind = experiment.data.tokenizer
    if kind == "pretrained" and experiment.data.tokenizer_path is None:
        problem = "is missing, but data.tokenizer is pretrained"
        yield Violation(key=("data", "tokenizer_path"), problem=problem, hint="usually ${model.path}")
    if experiment.model.kind == "pretrained" and kind != "pretrained":
        problem = f"found {kind}, but a pretrained model reads the tokens that it was trained with"
        yield Violation(key=("data", "tokenizer"), problem=problem, hint="pretrained")
    if getattr(experiment.model, "vectors", None) is not None and kind == "pretrained":
        problem = "is a file of word vectors, but data.tokenizer is pretrained, which makes no words"
        yield Violation(
            key=("model", "vectors"), problem=problem, hint="words or whitespace in data.tokenizer"
        )


@rule("data.columns", "data.text_column", "data.label_column")
def _columns(experiment: Experiment) -> Iterator[Violation]:
    columns = experiment.data.columns
    if columns is None:
        return
    for name in ("text_column", "label_column"):
        column = getattr(experiment.data, name)
        if column not in columns:
            problem = f"found {column!r}, which is not one of data.columns ({', '.join(columns)})"
            yield Violation(key=("data", name), problem=problem, hint=suggest(column, columns))


@rule("data.delimiter")
def _delimiter(experiment: Experiment) -> Iterator[Violation]:
    delimiter = experiment.data.delimiter
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '\r\n\0"'):
        problem = f"found {delimiter!r}, expected one character, no line break and no quotation mark"
        yield Violation(key=("data", "delimiter"), problem=problem, hint=r'a tab is "\t" in double quotes')


@rule("task.class_weights", "data.labels")
def _class_weights(experiment: Experiment) -> Iterator[Violation]:
    given, labels = experiment.task.class_weights, experiment.data.labels
    if given is None or given == BALANCED:
        return
    if not isinstance(given, dict):
        problem = f"found {given!r}, expected {BALANCED}, or a number for each label, such as {{spam: 5}}"
        yield Violation(key=("task", "class_weights"), problem=problem)
        return
    for label, weight in given.items():
        key = ("task", "class_weights", label)
        if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 <= weight < math.inf:
            yield Violation(key=key, problem=f"found {weight!r}, expected a number of 0 or more")
        elif labels is not None and label not in labels:
            problem = f"found the label {label!r}, which is not one of data.labels"
            yield Violation(key=key, problem=problem, hint=suggest(label, labels))


@rule("model.kernels")
def _kernels(experiment: Experiment) -> Iterator[Violation]:
    if getattr(experiment.model, "kernels", None) == ():
        problem = "found an empty list, expected the width of at least one convolution"
        yield Violation(key=("model", "kernels"), problem=problem, hint="such as [3, 4]")


RULES = (one_file_or_splits, _splits, _tokenizer, _columns, _delimiter, _class_weights, _kernels)
