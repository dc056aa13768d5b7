"""What must hold between the keys of a data section, and of data and model."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.config.rules.book import Broken, rule
from toolkit.config.schema import Experiment
from toolkit.config.tree import suggest

_SPLITS = ("train", "validation", "test")


@rule("data.path", "data.train", "data.validation", "data.test")
def _data_source(experiment: Experiment) -> Iterator[Broken]:
    data = experiment.data
    if not all(hasattr(data, name) for name in ("path", *_SPLITS)):
        return
    given = [name for name in _SPLITS if getattr(data, name) is not None]
    ways = "expected either path (one file, cut by splits), or train and validation, and test if there is one"
    if data.path is not None and given:
        yield Broken(key=("data",), problem=f"found path together with {' and '.join(given)}, {ways}")
    elif data.path is None and not given:
        yield Broken(key=("data",), problem=f"no file is given, {ways}")
    elif data.path is None:
        for name in ("train", "validation"):
            if name not in given:
                problem = f"is missing beside {' and '.join(given)}, {ways}"
                yield Broken(key=("data", name), problem=problem)


@rule("data.splits")
def _splits(experiment: Experiment) -> Iterator[Broken]:
    splits = getattr(experiment.data, "splits", None)
    if not isinstance(splits, dict):
        return
    for name, share in splits.items():
        if name not in _SPLITS:
            hint = suggest(name, _SPLITS)
            yield Broken(key=("data", "splits", name), problem="there is no such split", hint=hint)
        elif share < 0:
            problem = f"found the share {share}, expected at least 0"
            yield Broken(key=("data", "splits", name), problem=problem)
    for name in ("train", "validation"):
        if not splits.get(name):
            yield Broken(key=("data", "splits", name), problem="this split needs a share above 0")


@rule("data.tokenizer", "data.tokenizer_path", "model.kind")
def _tokenizer(experiment: Experiment) -> Iterator[Broken]:
    kind, path = (getattr(experiment.data, name, None) for name in ("tokenizer", "tokenizer_path"))
    if kind == "pretrained" and path is None:
        problem = "is missing, though data.tokenizer is pretrained"
        yield Broken(key=("data", "tokenizer_path"), problem=problem, hint="as a rule ${model.path}")
    if experiment.model.kind == "pretrained" and kind is not None and kind != "pretrained":
        problem = f"found {kind}, but a pretrained model reads the tokens that it was trained with"
        yield Broken(key=("data", "tokenizer"), problem=problem, hint="pretrained")


@rule("data.columns", "data.text_column", "data.label_column")
def _columns(experiment: Experiment) -> Iterator[Broken]:
    columns = getattr(experiment.data, "columns", None)
    if columns is None:
        return
    for name in ("text_column", "label_column"):
        column = getattr(experiment.data, name)
        if column not in columns:
            problem = f"found {column!r}, which is none of data.columns ({', '.join(columns)})"
            yield Broken(key=("data", name), problem=problem, hint=suggest(column, columns))


@rule("data.delimiter")
def _delimiter(experiment: Experiment) -> Iterator[Broken]:
    delimiter = getattr(experiment.data, "delimiter", None)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '\r\n"'):
        problem = f"found {delimiter!r}, expected one character, no line break and no quotation mark"
        yield Broken(key=("data", "delimiter"), problem=problem, hint=r'a tab is "\t" in double quotes')
