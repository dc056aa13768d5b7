"""Options for the keys of `resources`: `--nodes 2` sets `resources.nodes=2`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from functools import partial
from types import UnionType
from typing import Any, get_args, get_type_hints

from slurm.config.resources import Resources

#: The attribute in which the parser collects overrides from these options.
DESTINATION = "resource_overrides"
_DESCRIPTION = "each sets the key of its name; docs/experiment-file/resources.md explains the keys"


def add_resource_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for each key with one value, unless the command has an option of that name."""
    parser.set_defaults(**{DESTINATION: []})
    group = parser.add_argument_group("resources", _DESCRIPTION)
    for key, types in _keys():
        option = f"--{key.replace('_', '-')}"
        # ArgumentError: the command already has an option of that name.
        with suppress(argparse.ArgumentError):
            kind: dict[str, Any] = {"action": "append_const", "const": f"resources.{key}=true"}
            if types != {bool}:
                metavar = "VALUE" if str in types else "N"
                kind = {"action": "append", "type": partial(_override, key, int in types), "metavar": metavar}
            group.add_argument(option, dest=DESTINATION, help=f"resources.{key}", **kind)


def _keys() -> Iterator[tuple[str, set[type]]]:
    """Yield the keys with a single value, and the types of the value."""
    hints = get_type_hints(Resources)
    for each in fields(Resources):
        hint = hints[each.name]
        types = set(get_args(hint)) if isinstance(hint, UnionType) else {hint}
        if types <= {int, str, bool, type(None)}:
            yield each.name, types - {type(None)}


def _override(key: str, is_number: bool, text: str) -> str:
    """Return `resources.KEY=VALUE`; a text is quoted, because a comma would make a list of a sweep."""
    is_plain = is_number and text.isascii() and text.isdecimal()
    return f"resources.{key}={text if is_plain else json.dumps(text, ensure_ascii=False)}"
