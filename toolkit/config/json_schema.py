"""The JSON Schema of an experiment file, made from the dataclasses that check it.

Editors complete and check a file with it. It is looser than the checks: a reference may replace any value,
and rules over several keys are not part of it.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from toolkit.config.checking.validate import check_into
from toolkit.config.composition.compose import file_faults, gather
from toolkit.config.fields import SWEEP, Limits, keys_of, limits
from toolkit.config.sections import experiment_type
from toolkit.registry import task_kinds
from toolkit.workload import TaskSpec

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE: Schema = {"$ref": "#/$defs/reference"}
_REFERENCE_TEXT: Schema = {
    "type": "string",
    "pattern": r"\$\{",
    "description": "Replaces a value: ${from_file:FILE} for what a file holds, ${oc.env:NAME} or "
    "${oc.env:NAME,default} for a variable, ${a.b} for another key.",
}
_TASK_TEXT: Schema = {
    "type": "string",
    "description": "A text may replace the section: the file or the module with the code of a task.",
}
#: The JSON types of a whole number, a number, a truth value and a text.
_SCALARS: Mapping[Any, Schema] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    str: {"type": ["string", "integer"]},
}
#: Sections whose keys depend on the task.
_OF_TASK = ("data", "model")
_BOUNDS = {"minimum": "minimum", "above": "exclusiveMinimum", "maximum": "maximum"}


def experiment_schema(more: Mapping[str, Schema], files: Sequence[Path] = ()) -> Schema:
    """The schema of an experiment file: tasks, data and models of all installed workloads included.

    more   schemas of further sections that a file may hold, by name
    files  experiments of tasks with their own code for the keys of data and model, which are then included
    Raises ConfigError with the faults of one of the files.
    """
    defs = _Definitions()
    tasks = task_kinds()
    usual = defs.section(experiment_type())
    wholes = {
        name: usual if row.experiment is None else defs.section(experiment_type(row.experiment))
        for name, row in tasks.items()
    }
    whole = {**usual, "properties": dict(usual["properties"])}
    for each in wholes.values():
        whole["properties"] = {**whole["properties"], **each["properties"], **usual["properties"]}
    whole["required"] = [key for key in usual["required"] if key not in _OF_TASK]
    whole["properties"] |= more
    sections = defs.one_of({name: row.config for name, row in tasks.items()})
    whole["properties"]["task"] = {"anyOf": [sections, _TASK_TEXT]}
    keys = {*whole["properties"]} - {*more}
    fixed = [(name, row) for name, row in tasks.items() if row.own_sections is None]
    whole["allOf"] = [_of_task(name, row, defs, wholes[name], keys) for name, row in fixed]
    whole["allOf"] += [_of_own_code(file, defs) for file in files]
    return {
        "$schema": _DIALECT,
        "title": "Experiment of slurm-toolkit",
        **whole,
        "$defs": {"reference": _REFERENCE_TEXT, **defs.found},
    }


def _or_reference(schema: Schema) -> Schema:
    return {"anyOf": [schema, _REFERENCE]}


def _of_task(name: str, row: TaskSpec, defs: _Definitions, whole: Schema, keys: set[str]) -> Schema:
    """Return the schema of the other sections for one `task.kind`.

    keys  top-level keys of the experiments of all tasks
    """
    sections: dict[str, Any] = {key: False for key in sorted(keys) if key not in whole["properties"]}
    if "data" in whole["properties"]:
        sections["data"] = _or_reference(defs.of(row.data))
    if row.models:
        models = defs.one_of({kind: section for kind, (section, _) in row.models.items()})
        sections["model"] = _or_reference(models)
    return {
        "if": {"properties": {"task": _is_kind(name)}, "required": ["task"]},
        "then": {"properties": sections, "required": whole["required"]},
    }


def _of_own_code(file: Path, defs: _Definitions) -> Schema:
    """Return the schema of data and model for the task of an experiment file."""
    faults = file_faults(file)
    tree = gather(file, (), None, faults)
    experiment = check_into({**tree, SWEEP: None}, faults)
    if task_kinds()[experiment.task.kind].own_sections is None:
        # The sections are known without the file.
        return {}
    task = tree["task"]
    if isinstance(task, dict):
        texts = {name: {"const": value} for name, value in task.items() if isinstance(value, str)}
        same: Schema = {"type": "object", "properties": texts, "required": list(texts)}
    else:
        same = {"const": task}
    # Not by name, because the code of each file makes a class of the same name.
    sections = {
        name: _or_reference({"anyOf": [defs.section(type(getattr(experiment, name))), {"type": "null"}]})
        for name in _OF_TASK
    }
    return {"if": {"properties": {"task": same}, "required": ["task"]}, "then": {"properties": sections}}


def _is_kind(name: str) -> Schema:
    return {"type": "object", "properties": {"kind": {"const": name}}, "required": ["kind"]}


class _Definitions:
    """The schemas of dataclasses that others refer to, by name."""

    def __init__(self) -> None:
        self.found: dict[str, Schema] = {}

    def of(self, section: type) -> Schema:
        """A reference to the schema of a dataclass."""
        name = f"{section.__module__}.{section.__name__}"
        if name not in self.found:
            # First, because a section may hold others of its own kind.
            self.found[name] = {}
            self.found[name] |= self.section(section)
        return {"$ref": f"#/$defs/{name}"}

    def one_of(self, table: Mapping[str, type]) -> Schema:
        """One of several sections, which their key `kind` distinguishes."""
        return {
            "type": "object",
            "properties": {"kind": {"enum": list(table)}},
            "required": ["kind"],
            "oneOf": [{**self.of(section), **_is_kind(kind)} for kind, section in table.items()],
        }

    def section(self, section: type) -> Schema:
        """The schema of a dataclass."""
        texts, hints = field_docs(section), get_type_hints(section)
        properties = {each.name: self._key(each, hints[each.name], texts) for each in keys_of(section)}
        required = [
            each.name
            for each in keys_of(section)
            if each.default is MISSING and each.default_factory is MISSING
        ]
        return {
            "description": " ".join((section.__doc__ or "").split()),
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }

    def _key(self, of: Field[Any], hint: Any, texts: Mapping[str, str]) -> Schema:
        schema = self._value(hint, limits(of))
        text = {"description": texts[of.name]} if of.name in texts else {}
        usual = {} if of.default is MISSING else {"default": of.default}
        return {**_or_reference(schema), **text, **usual}

    def _value(self, hint: Any, allowed: Limits) -> Schema:
        """Return the schema of a type, references within it included."""
        if get_origin(hint) in (types.UnionType, Union):
            return {"anyOf": [self._value(each, allowed) for each in get_args(hint)]}
        if hint is type(None):
            return {"type": "null"}
        if hint is Any:
            kinds = allowed.kinds() if allowed.kinds else {}
            return {"anyOf": [{"enum": list(kinds)}, self.one_of(kinds)]} if kinds else {}
        if is_dataclass(hint):
            # A heading with nothing under it has the defaults.
            return {"anyOf": [self.of(hint), {"type": "null"}]}  # type: ignore[arg-type]
        if get_origin(hint) is tuple:
            return self._list(get_args(hint), allowed)
        if get_origin(hint) is dict:
            return self._mapping(get_args(hint)[1], allowed)
        return _scalar(hint, allowed)

    def _list(self, types: tuple[Any, ...], allowed: Limits) -> Schema:
        if types[-1] is Ellipsis:
            return {"type": "array", "items": _or_reference(self._value(types[0], allowed))}
        items = [_or_reference(self._value(each, allowed)) for each in types]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}

    def _mapping(self, inner: Any, allowed: Limits) -> Schema:
        value = self._value(inner | None if allowed.rest else inner, allowed)
        mapping = {"type": "object", "additionalProperties": _or_reference(value)}
        return {"anyOf": [mapping, {"type": "string"}]} if allowed.json_file else mapping


def _scalar(hint: Any, allowed: Limits) -> Schema:
    if allowed.choices:
        return {"enum": list(allowed.choices)}
    schema = dict(_SCALARS[hint])
    if hint is str:
        # ECMA's regular expressions have no possessive or inline forms; ours do not use them.
        return schema | ({"pattern": f"^({allowed.pattern})$"} if allowed.pattern else {})
    bounds = {word: getattr(allowed, name) for name, word in _BOUNDS.items()}
    return schema | {word: bound for word, bound in bounds.items() if bound is not None}


@cache
def field_docs(section: type) -> Mapping[str, str]:
    """The text below each field of a dataclass or its bases, on one line; `kind` gets the class's text."""
    found = {"kind": (inspect.getdoc(section) or "").partition("\n")[0]}
    for base in reversed([each for each in section.__mro__ if is_dataclass(each)]):
        found |= _own(base)
    return found


def _own(section: type) -> dict[str, str]:
    try:
        (tree,) = ast.parse(inspect.getsource(section)).body
    except OSError:
        # Made by make_dataclass, or installed without its source.
        return {}
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for before, after in itertools.pairwise(tree.body):
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
            match after:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found[before.target.id] = " ".join(text.split())
    return found
