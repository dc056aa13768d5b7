"""`key.path=value` from the command line, also inside included files."""

from __future__ import annotations

import json
import shlex
import string
from collections.abc import Sequence
from typing import Any

from toolkit.config.composition.includes import Includes, find_includes
from toolkit.config.composition.yaml_files import Unreadable, last_comment, parse
from toolkit.config.faults import Faults
from toolkit.config.origins import COMMAND_LINE, UNKNOWN, Key, Origins, dotted, index_in, no_index

#: More parts would only nest sections too deep to be read.
_MAX_PARTS = 50
#: Characters that are a text if one of them is the whole value, as in `key=,`: as YAML most of them
#: would be a fault, null or a list. `~` stays null. `---` would begin a document.
_LONE = frozenset(string.punctuation) - {"~"} | {"\t", "---"}


def apply(overrides: Sequence[str], includes: Includes) -> None:
    """Set each override in the experiment's tree, in their order; faults are recorded.

    The value is YAML, so `key=` sets null; a lone character of punctuation, a tab, or `---`, is a text.
    Includes on the path are read; replaced includes are not read, so they need not exist.
    """
    for text in overrides:
        parsed = _parse(text, includes.faults)
        if parsed is not None:
            _set(parsed[0], parsed[1], includes)


def last_values(overrides: Sequence[str]) -> dict[Key, tuple[str, Any]]:
    """The last override of each key, as it is written, and its value. Those with faults are left out."""
    parsed = ((text, _parse(text, Faults(Origins(COMMAND_LINE)))) for text in overrides)
    return {pair[0]: (text, pair[1]) for text, pair in parsed if pair is not None}


def _parse(text: str, faults: Faults) -> tuple[Key, Any] | None:
    name, equals, value = text.partition("=")
    key = tuple(part.strip() for part in name.split("."))
    if not equals or not all(key) or len(key) > _MAX_PARTS:
        problem = f"found {text!r}, expected key=value or key.inner=value"
        faults.add((), problem, at=COMMAND_LINE)
        return None
    if (lone := value.strip(" ")) in _LONE:
        return key, lone
    try:
        document = parse(value)
    except Unreadable as error:
        faults.add(key, f"{error.problem}, found {value!r}", error.hint, COMMAND_LINE)
        return None
    for inner, _, problem, hint in document.faults:
        faults.add((*key, *inner), problem, hint, COMMAND_LINE, unsure=False)
    if "#" in value and (comment := last_comment(value)):
        quoted = shlex.quote(json.dumps(value.strip(), ensure_ascii=False))
        problem = f"found {value!r}, of which YAML reads {comment!r} as a comment"
        faults.add(key, problem, f"quote a text: {dotted(key)}={quoted}", COMMAND_LINE)
        return None
    return key, find_includes(document.value, ())


def _set(key: Key, value: Any, includes: Includes) -> None:
    container: Any = includes.tree
    for depth, part in enumerate(key[:-1], start=1):
        whole = ".".join(key[depth - 1 :])
        if isinstance(container, dict) and whole in container and not isinstance(container.get(part), dict):
            # A name with dots, as in params: {model.lr: 0.1}.
            key = (*key[: depth - 1], whole)
            break
        place = _place(container, part, key[:depth], includes.faults)
        if place is None:
            return
        container = _enter(container, place, key[: depth + 1], includes)
        if container is UNKNOWN:
            return
    place = _place(container, key[-1], key, includes.faults)
    if place is None:
        return
    if isinstance(container, list) and place == len(container):
        container.append(value)
    else:
        container[place] = value
    includes.faults.origins.forget(key)
    includes.faults.origins.put(key, COMMAND_LINE)


def _place(container: Any, part: str, key: Key, faults: Faults) -> str | int | None:
    """The key or index that a part of a path means in a container; None, with a fault, if it has none."""
    if isinstance(container, dict):
        return part
    if isinstance(container, list):
        index = index_in(part)
        if index is not None and index <= len(container):
            return index
        faults.add(key, no_index(key[:-1], len(container)), at=COMMAND_LINE)
        return None
    problem = f"{dotted(key[:-1])} is {container!r}, which holds no keys"
    faults.add(key, problem, "override it as a whole", COMMAND_LINE)
    return None


def _enter(container: Any, place: str | int, key: Key, includes: Includes) -> Any:
    """The container at a place, which is made if it is missing; `key` is the path that must exist in it."""
    if isinstance(container, list) and place == len(container):
        container.append(None)
    elif isinstance(container, dict):
        container.setdefault(place, None)
    inner = includes.open(container, place, key[:-1])
    if inner is None:
        inner = container[place] = {}
        includes.faults.origins.put(key[:-1], COMMAND_LINE)
        includes.faults.origins.begin(key[:-1])
    return inner
