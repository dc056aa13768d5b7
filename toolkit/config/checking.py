"""From a plain tree to a typed Experiment, with every fault of it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from toolkit.config.json_files import NotJson, read_json_mapping
from toolkit.config.kinds import TASKS
from toolkit.config.options import SWEEP
from toolkit.config.options import limits as limits_of
from toolkit.config.processes import PROCESS_KEYS, share_out
from toolkit.config.rules import check_rules
from toolkit.config.scalars import CONVERSIONS, WRONG, flow_list, is_null, number_of
from toolkit.config.schema import Experiment
from toolkit.config.tree import UNKNOWN, Faults, Key, Origin, Origins, suggest
from toolkit.config.wording import allowed, found, without_none


def check(tree: Mapping[str, Any], origins: Origins | None = None) -> Experiment:
    """Check a plain tree and return the experiment. Raises ConfigError with all faults."""
    faults = Faults(origins or Origins(Origin("the experiment")))
    return check_into(tree, faults)


def check_into(tree: Mapping[str, Any], faults: Faults) -> Experiment:
    """As `check`, with the faults that composition found; raises ConfigError if there are any."""
    experiment = _Checker(faults).experiment(_without_sweep(tree, faults))
    if not faults.doubts(PROCESS_KEYS):
        experiment = replace(experiment, resources=share_out(experiment.resources))
    check_rules(experiment, faults)
    faults.raise_any()
    return experiment


def _without_sweep(tree: Mapping[str, Any], faults: Faults) -> dict[str, Any]:
    """The tree of one experiment: a section that makes many of it is a fault, and passed over."""
    one = dict(tree)
    if one.pop(SWEEP, None) is not None:
        problem = "this section makes many runs, but one is asked for here"
        hint = f"`stk sweep` makes them; {SWEEP}=null leaves it out, for the experiment alone"
        faults.add((SWEEP,), problem, hint, unsure=False)
    return one


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


class _Checker:
    """Builds dataclasses; None stands where there is a fault, so that checking goes on."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def experiment(self, tree: dict[str, Any]) -> Experiment:
        row = TASKS.get(self._pick(tree, "task", TASKS))
        models = row.models if row else {}
        model = self._pick(tree, "model", models) if row else ""
        kinds = {
            "task": row.parameters if row else None,
            "model": models[model][0] if model in models else None,
            "data": row.data if row else None,
        }
        experiment: Experiment = self._section(Experiment, tree, (), kinds)
        return experiment

    def _pick(self, tree: dict[str, Any], name: str, table: Mapping[str, Any]) -> str:
        """The `kind` of a section, if it is in the table; else empty, and the fault is recorded."""
        if name not in tree:
            expected = f"expected a section with the key kind, {_one_of(table)}"
            self._faults.add((name,), f"is missing, {expected}")
            return ""
        return self._kind_in(tree[name], table, (name,))

    def _kind_in(self, section: Any, table: Mapping[str, Any], key: Key) -> str:
        """As `_pick`, of a section that is there."""
        if section is UNKNOWN:
            return ""
        if not isinstance(section, dict):
            expected = f"expected a section with the key kind, {_one_of(table)}"
            self._faults.add(key, f"{found(section)}, {expected}")
            return ""
        kind = section.get("kind")
        if isinstance(kind, str) and kind in table:
            return kind
        if kind is not UNKNOWN:
            problem = found(kind) if "kind" in section else "is missing"
            self._faults.add((*key, "kind"), f"{problem}, {_one_of(table)}", _guess(kind, table))
        return ""

    def _section(
        self, cls: type, value: Any, key: Key, kinds: Mapping[str, type | None] | None = None
    ) -> Any:
        """A dataclass from a mapping; `kinds` gives the types of sections that a kind picks."""
        if value is None:
            # A heading with nothing under it.
            value = {}
        if not isinstance(value, dict):
            self._faults.add(key, f"{found(value)}, expected {allowed(cls, {})}")
            return None
        known = {each.name: each for each in fields(cls)}
        for name in value:
            if name not in known:
                hint = suggest(name, known)
                self._faults.add((*key, name), "there is no such key", hint, unsure=False)
        hints = {**_hints(cls), **(kinds or {})}
        checked = {name: self._field(each, hints[name], value, (*key, name)) for name, each in known.items()}
        return cls(**checked)

    def _field(self, of: Field[Any], hint: Any, section: dict[str, Any], key: Key) -> Any:
        if of.name in section:
            if hint is None:
                # Its kind is not known, so nothing can be said of what it holds.
                self._faults.unsure.add(key)
                return None
            return self._value(hint, section[of.name], key, limits_of(of))
        if of.default is not MISSING:
            return _located(of.default, limits_of(of))
        if of.default_factory is not MISSING:
            return of.default_factory()
        if key not in self._faults.unsure:
            expected = "a section (a mapping)" if hint is None else allowed(hint, limits_of(of))
            self._faults.add(key, f"is missing, expected {expected}")
        return None

    def _value(self, hint: Any, value: Any, key: Key, limits: Mapping[str, Any]) -> Any:
        if value is UNKNOWN:
            self._faults.unsure.add(key)
            return None
        hint, optional = without_none(hint)
        if optional and (value is None or (hint is not str and is_null(value))):
            return None
        if is_dataclass(hint):
            return self._section(hint, value, key)  # type: ignore[arg-type]
        if hint is Any and limits.get("kinds"):
            return self._kinded(limits["kinds"](), value, key)
        if get_origin(hint) is tuple:
            return self._list(hint, value, key, limits)
        if get_origin(hint) is dict:
            return self._mapping(hint, self._read(value, key, limits), key, limits)
        if hint is Any:
            return self._plain(value, key)
        return self._scalar(hint, value, key, limits, optional)

    def _kinded(self, table: Mapping[str, type], value: Any, key: Key) -> Any:
        """A section whose kind picks its dataclass; a text is a kind with its defaults."""
        section = {"kind": value} if isinstance(value, str) else value
        kind = self._kind_in(section, table, key)
        return self._section(table[kind], section, key) if kind else None

    def _list(self, hint: Any, value: Any, key: Key, limits: Mapping[str, Any]) -> Any:
        items = flow_list(value)
        types = get_args(hint)
        any_length = types[-1] is Ellipsis
        if not isinstance(items, list | tuple) or not (any_length or len(items) == len(types)):
            self._faults.add(key, f"{found(value)}, expected {allowed(hint, limits)}")
            return None
        if any_length:
            types = (types[0],) * len(items)
        pairs = enumerate(zip(types, items, strict=True))
        return tuple(self._value(each, item, (*key, str(index)), limits) for index, (each, item) in pairs)

    def _read(self, value: Any, key: Key, limits: Mapping[str, Any]) -> Any:
        """The mapping in a JSON file, where its name stands in place of it."""
        if not limits.get("json_file") or not isinstance(value, str):
            return value
        try:
            content = read_json_mapping(value)
        except NotJson as error:
            self._faults.add(key, str(error))
            return UNKNOWN
        for name in content:
            self._faults.origins.put((*key, name), Origin(value))
        return content

    def _mapping(self, hint: Any, value: Any, key: Key, limits: Mapping[str, Any]) -> Any:
        if value is UNKNOWN:
            return None
        if not isinstance(value, dict):
            self._faults.add(key, f"{found(value)}, expected {allowed(hint, limits)}")
            return None
        if limits.get("rest"):
            value = self._with_rest(value, key)
        inner = get_args(hint)[1]
        for name in value:
            self._unprintable(name, (*key, name))
        return {name: self._value(inner, item, (*key, name), limits) for name, item in value.items()}

    def _with_rest(self, shares: dict[str, Any], key: Key) -> dict[str, Any]:
        """Shares with what the others leave of 1 in place of a null."""
        nulls = [name for name, share in shares.items() if share is None or is_null(share)]
        others = [number_of(share) for name, share in shares.items() if name not in nulls]
        if not nulls or WRONG in others:
            return shares
        # Rounded: 0.8 and 0.1 leave 0.1, not 0.09999999999999998.
        rest = round(1 - sum(others), 12)
        if len(nulls) > 1:
            self._faults.add((*key, nulls[1]), f"found null here and for {nulls[0]}: only one takes the rest")
        elif rest < 0:
            problem = f"found null, which takes the rest, but the others add up to {sum(others):g}"
            self._faults.add((*key, nulls[0]), problem, "shares of 1, such as 0.8 and 0.1")
        return shares | {name: max(rest, 0.0) for name in nulls}

    def _plain(self, value: Any, key: Key) -> Any:
        """Any plain value, looked through for what could not be written down."""
        if isinstance(value, dict):
            return self._mapping(dict[str, Any], value, key, {})
        if isinstance(value, list):
            return [self._value(Any, item, (*key, str(index)), {}) for index, item in enumerate(value)]
        if isinstance(value, float) and not math.isfinite(value):
            self._faults.add(key, f"{found(value)}, expected a finite number")
        elif isinstance(value, str):
            self._unprintable(value, key)
        return value

    def _scalar(self, hint: Any, value: Any, key: Key, limits: Mapping[str, Any], optional: bool) -> Any:
        result = CONVERSIONS[hint](value)
        if result is WRONG or not _within(result, limits):
            expected = allowed(hint | None if optional else hint, limits)
            self._faults.add(key, f"{found(value)}, expected {expected}", _cure(hint, value, limits))
            return None
        if isinstance(result, str):
            self._unprintable(result, key)
        return _located(result, limits)

    def _unprintable(self, text: str, key: Key) -> None:
        """Refuse what no file name, variable or YAML file can hold."""
        if "\0" in text:
            self._faults.add(key, f"{found(text)}, which holds a NUL character")
        elif any("\ud800" <= character <= "\udfff" for character in text):
            self._faults.add(key, f"{found(text)}, which is not valid Unicode text")


def _located(value: Any, limits: Mapping[str, Any]) -> Any:
    """A file name made absolute, because the run will have another working directory."""
    is_file = isinstance(value, str) and (limits.get("path") or (limits.get("hub") and _is_here(value)))
    return os.path.abspath(value) if is_file else value


def _is_here(name: str) -> bool:
    """Whether a folder is meant, and no name on a hub, which may look like one: it or its parent is here."""
    folder = os.path.dirname(name)
    return os.path.exists(name) or (folder != "" and os.path.isdir(folder))


def _one_of(table: Mapping[str, Any]) -> str:
    return f"expected one of {', '.join(table)}"


def _within(value: Any, limits: Mapping[str, Any]) -> bool:
    choices, pattern = limits.get("choices"), limits.get("pattern")
    low, above, high = (limits.get(name) for name in ("minimum", "above", "maximum"))
    return (
        (not choices or value in choices)
        and (value != "" or not (limits.get("path") or limits.get("hub")))
        and (pattern is None or not isinstance(value, str) or re.fullmatch(pattern, value) is not None)
        and (low is None or isinstance(value, str) or value >= low)
        and (above is None or value > above)
        and (high is None or value <= high)
    )


def _guess(value: Any, valid: Any) -> str:
    """A hint where a text is nearly one of the valid ones."""
    hint = suggest(value, valid) if isinstance(value, str) else ""
    return hint if hint.startswith("did") else ""


def _cure(hint: Any, value: Any, limits: Mapping[str, Any]) -> str:
    if limits.get("choices"):
        return _guess(value, limits["choices"])
    if hint is str and isinstance(value, bool | float):
        return "put it in quotes if text is meant"
    if hint is bool and isinstance(value, str) and value.lower() in ("yes", "no", "on", "off"):
        return "only true and false are truth values"
    return ""
