"""How a field of a config dataclass says what is allowed, and whether it changes the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, field
from typing import Any

_KEY = "stk"

#: The section of an experiment file that says which runs `stk sweep` makes of it. It is no part of them.
SWEEP = "sweep"


def option(
    default: Any = MISSING,
    *,
    factory: Any = MISSING,
    choices: Sequence[Any] = (),
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    pattern: str | None = None,
    identity: bool = True,
    path: bool = False,
    hub: bool = False,
    json_file: bool = False,
    rest: bool = False,
    kinds: Callable[[], Mapping[str, type]] | None = None,
) -> Any:
    """A dataclass field with limits; without default or factory it must be given.

    choices            the allowed values
    minimum, maximum   the allowed range, both included
    above              an excluded lower limit
    pattern            a regular expression that the whole text must match
    path               a file name: made absolute against the working directory
    hub                a folder, made absolute if it or its parent is there, or else a name on a model hub
    json_file          a mapping, or the name of a JSON file that holds one: it is read in place of the name
    rest               a mapping of shares, of which one may be null: it takes what the others leave of 1
    kinds              a section, or a list of them, whose key `kind` picks one of these dataclasses; called
                       late, so that a kind may hold sections of its own table
    identity           False for what cannot change the result: it is no part of the run's identity
    """
    limits = {
        "choices": tuple(choices),
        "minimum": minimum,
        "above": above,
        "maximum": maximum,
        "pattern": pattern,
        "identity": identity,
        "path": path,
        "hub": hub,
        "json_file": json_file,
        "rest": rest,
        "kinds": kinds,
    }
    if factory is not MISSING:
        return field(default_factory=factory, metadata={_KEY: limits})
    return field(default=default, metadata={_KEY: limits})


def limits(of: Field[Any]) -> dict[str, Any]:
    """The limits that `option` stored; empty for a plain field."""
    return dict(of.metadata.get(_KEY, {}))


def is_path(of: Field[Any]) -> bool:
    """Whether a field names a file."""
    return bool(limits(of).get("path", False))


def is_identity(of: Field[Any]) -> bool:
    """Whether a field takes part in the run's identity."""
    return bool(limits(of).get("identity", True))
