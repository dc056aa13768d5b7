"""Options for the keys of `resources`: `--nodes 2` sets `resources.nodes=2`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
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
            kind: dict[str, Any] = (
                {"nargs": 0} if types == {bool} else {"metavar": "VALUE" if str in types else "N"}
            )
            group.add_argument(
                option, action=_Sets, key=key, help=f"resources.{key}", is_number=int in types, **kind
            )


def _keys() -> Iterator[tuple[str, set[type]]]:
    """Yield the keys with a single value, and the types of the value."""
    hints = get_type_hints(Resources)
    for each in fields(Resources):
        hint = hints[each.name]
        types = set(get_args(hint)) if isinstance(hint, UnionType) else {hint}
        if types <= {int, str, bool, type(None)}:
            yield each.name, types - {type(None)}


class _Sets(argparse.Action):
    """Collects `resources.KEY=VALUE`."""

    def __init__(self, *, key: str, is_number: bool, **options: Any) -> None:
        super().__init__(**{**options, "dest": DESTINATION, "default": argparse.SUPPRESS})
        self._key, self._is_number = key, is_number

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        # Quoted: a comma would make a list of a sweep. Numbers are not quoted. A flag has no values.
        value = json.dumps(values, ensure_ascii=False) if isinstance(values, str) else "true"
        if self._is_number and isinstance(values, str) and values.isascii() and values.isdecimal():
            value = values
        known = [*getattr(namespace, DESTINATION), f"resources.{self._key}={value}"]
        setattr(namespace, DESTINATION, known)
