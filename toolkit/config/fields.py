"""Limits of a config dataclass's fields, and whether a field changes the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

_KEY = "stk"

#: The section of an experiment file with the runs that `stk sweep` makes. It is not part of these runs.
SWEEP = "sweep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The allowed values of a key, and how they are read.

    known_as           names that other programs have for the key, with spaces between: for hints
    choices            the allowed values
    instead            names that other programs have for such a value, and what to use in their place
    minimum, maximum   the allowed range, both included
    above              an excluded lower limit
    pattern            a regular expression that the whole text must match
    path               a file name: made absolute against the working directory
    hub                a folder, made absolute if it or its parent exists, or else a name on a model hub
    run                the folder of an earlier run, or a file in it: `stk clean` keeps it
    json_file          a mapping, or the name of a JSON file that holds one: it is read in place of the name
    amount             a text, such as a time: a fraction without quotes becomes a text, which a rule checks
    rest               a mapping of shares; one may be null: it takes the rest of 1
    kinds              a section, or a list of sections, with one of these dataclasses for each `kind`; called
                       late, so that a kind may hold sections of the same table
    identity           False if the key cannot change the result: it is not part of the run's identity
    added              True for a key that an earlier version does not have. Its default keeps the behaviour
                       of that version, and is not part of the identity: runs of that version keep theirs
    counts_as          values that the identity replaces by others. If a default has changed, the new one
                       counts as the old one, so that runs of an earlier version are found
    """

    known_as: str = ""
    choices: Sequence[Any] = ()
    instead: Mapping[str, str] = field(default_factory=dict)
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    pattern: str | None = None
    path: bool = False
    hub: bool = False
    run: bool = False
    json_file: bool = False
    amount: bool = False
    rest: bool = False
    kinds: Callable[[], Mapping[str, type]] | None = None
    identity: bool = True
    added: bool = False
    counts_as: Mapping[Any, Any] = field(default_factory=dict)


def option(default: Any = MISSING, *, factory: Any = MISSING, **limits: Any) -> Any:
    """A dataclass field with `Limits`; without default or factory it must be given."""
    metadata = {_KEY: Limits(**limits)}
    assert (default, factory) != (MISSING, MISSING) or not metadata[_KEY].added
    if factory is not MISSING:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)


def absent(value: Any) -> Any:
    """A field that is not a key: code that reads it gets this value. It must be hashable."""
    return field(init=False, default=value)


def keys_of(cls: Any) -> tuple[Field[Any], ...]:
    """The fields of a dataclass that are keys, in their order."""
    return tuple(each for each in fields(cls) if each.init)


def limits(of: Field[Any]) -> Limits:
    """Return the limits that `option` stored; no limits for a plain field."""
    found: Limits = of.metadata.get(_KEY, Limits())
    return found
