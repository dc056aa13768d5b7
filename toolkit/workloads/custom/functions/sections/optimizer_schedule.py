"""The sections `optimizer` and `lr_scheduler`, if functions of the user's file replace them. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from toolkit.config.composition.begun import Begun, NoEntry, filled
from toolkit.config.library_arguments import OWN
from toolkit.workload import Violation
from toolkit.workloads.custom.functions.reading.parameters import REQUIRED, fits
from toolkit.workloads.custom.functions.reading.signatures import Functions

#: Parameters that are keys of the section `optimizer`. Other parameters go into its key `arguments`.
SECTION_KEYS = ("lr", "weight_decay", "no_decay", "betas", "eps", "momentum")
_OPTIMIZER, _SCHEDULE = "optimizer", "lr_scheduler"
#: The function that replaces each section.
_FUNCTIONS = {_OPTIMIZER: "optimizer", _SCHEDULE: "schedule"}


def made_sections(functions: Functions, tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections that functions of the file replace. Their keys are the function's parameters."""
    found: dict[str, Any] = {}
    if functions.optimizer is not None:
        values = {each.name: each.default for each in functions.optimizer if each.default is not REQUIRED}
        for name, value in _written(tree).items():
            # An index that the list does not have is a fault of `optimizer_faults`.
            with suppress(NoEntry):
                values[name] = _with_default(name, value, values.get(name))
        of_section = {name: value for name, value in values.items() if name in SECTION_KEYS}
        arguments = {name: value for name, value in values.items() if name not in SECTION_KEYS}
        found[_OPTIMIZER] = {"kind": OWN, **of_section, "arguments": arguments}
    if functions.has("schedule"):
        found[_SCHEDULE] = {"kind": OWN}
    return found


def optimizer_faults(functions: Functions, tree: Mapping[str, Any]) -> Iterator[Violation]:
    """Find keys that the function `optimizer` does not take, values of the wrong type, and missing keys."""
    yield from _kind_faults(_OPTIMIZER, functions, tree)
    if functions.optimizer is None:
        return
    known = {each.name: each for each in functions.optimizer}
    written = _written(tree)
    for name, value in written.items():
        if name not in known:
            problem = f"found {value!r}, but {_place(functions, 'optimizer')} takes no {name}"
            hint = f"it takes {', '.join(known) or 'nothing'}"
            yield Violation(key=(_OPTIMIZER, name), problem=problem, hint=hint)
            continue
        try:
            value = _with_default(name, value, known[name].default)
        except NoEntry as error:
            yield Violation(key=error.key, problem=str(error))
            continue
        if not isinstance(value, Begun) and not fits(known[name].hint, value):
            expected = getattr(known[name].hint, "__name__", str(known[name].hint))
            yield Violation(key=(_OPTIMIZER, name), problem=f"found {value!r}, expected {expected}")
    for name, parameter in known.items():
        if parameter.default is REQUIRED and name not in (*written, "lr"):
            problem = f"is missing, and {_place(functions, 'optimizer')} gives it no default"
            yield Violation(key=(_OPTIMIZER, name), problem=problem, hint=f"{_OPTIMIZER}.{name}=…")


def schedule_faults(functions: Functions, tree: Mapping[str, Any]) -> Iterator[Violation]:
    """Find keys of the section `lr_scheduler` if the function `schedule` replaces it."""
    yield from _kind_faults(_SCHEDULE, functions, tree)
    if not functions.has("schedule"):
        return
    for name in (each for each in _section(tree, _SCHEDULE) if each != "kind"):
        problem = f"found a value, but {_place(functions, 'schedule')} gives the learning rate"
        yield Violation(key=(_SCHEDULE, name), problem=problem, hint="leave out the key, or the function")


def _kind_faults(section: str, functions: Functions, tree: Mapping[str, Any]) -> Iterator[Violation]:
    """Find a kind that contradicts the file: another kind although it has a function, or `own` without."""
    kind, function = _section(tree, section).get("kind"), _FUNCTIONS[section]
    if kind is not None and functions.has(function) and kind != OWN:
        problem = f"found {kind}, but {_place(functions, function)} replaces it"
        yield Violation(key=(section, "kind"), problem=problem, hint="leave out the key, or the function")
    elif kind == OWN and not functions.has(function):
        problem = f"found {kind}, but {functions.path.name} has no function {function}"
        yield Violation(key=(section, "kind"), problem=problem)


def _with_default(name: str, value: Any, default: Any) -> Any:
    """Return a value with the other entries of its default. Raises NoEntry.

    A key of the section stays a Begun if its default in the function is no list: the checker then adds the
    entries of the section's default. Other entries without a default are those of a mapping.
    """
    if isinstance(value, Begun) and name not in SECTION_KEYS and not isinstance(default, list | tuple | dict):
        return dict(value)
    is_of_section = name in SECTION_KEYS and not isinstance(default, list | tuple)
    return value if is_of_section else filled(value, default, (_OPTIMIZER, name))


def _written(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return an experiment's values for its optimizer, including those in `arguments`."""
    written = dict(_section(tree, _OPTIMIZER))
    written.pop("kind", None)
    arguments = written.pop("arguments", None)
    return {**written, **(arguments if isinstance(arguments, dict) else {})}


def _section(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = tree.get(name)
    return section if isinstance(section, dict) else {}


def _place(functions: Functions, function: str) -> str:
    line = functions.lines.get(function)
    return f"{function} ({functions.path.name}{f':{line}' if line else ''})"
