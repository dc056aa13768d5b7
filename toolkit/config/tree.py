"""Keys of an experiment's tree: where each came from, and all that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from toolkit.errors import ConfigError, Fault

#: Path of a value in the tree; an index of a list is written as text.
Key = tuple[str, ...]


class _Unknown(Enum):
    """Type of UNKNOWN, which survives copying."""

    UNKNOWN = "unknown"


#: Stands where a value could not be composed; the fault is recorded, so that checks pass over it.
UNKNOWN: Final = _Unknown.UNKNOWN


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where a key was written: a file and its line, counted from 1; 0 where there is no line."""

    place: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.place}:{self.line}" if self.line else self.place


COMMAND_LINE = Origin("command line")


def dotted(key: Key) -> str:
    """A key as people write it; parts that would break the message are quoted."""
    return ".".join(part if part.isprintable() and part else repr(part) for part in key)


def covers(one: Key, other: Key) -> bool:
    """Whether one of two keys lies within the other, or they are the same."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


class Origins:
    """The origin of every key; one that was not written itself has that of the section around it."""

    def __init__(self, root: Origin) -> None:
        self._origins: dict[Key, Origin] = {(): root}

    def of(self, key: Key) -> Origin:
        """The origin of a key, or of the nearest section around it."""
        while key not in self._origins:
            key = key[:-1]
        return self._origins[key]

    def put(self, key: Key, origin: Origin) -> None:
        """Record where a key was written."""
        self._origins[key] = origin

    def forget(self, key: Key) -> None:
        """Drop what lies within a key, because its value is replaced."""
        within = [known for known in self._origins if known[: len(key)] == key and known != ()]
        for known in within:
            del self._origins[known]

    def as_dict(self) -> dict[str, str]:
        """Dotted key -> origin, in the order of writing; the whole under the empty key."""
        return {dotted(key): str(origin) for key, origin in self._origins.items()}


class Faults:
    """Collects the faults of one experiment, to be raised together.

    `unsure` are the keys whose value is faulty or unknown: rules over several keys leave them out.
    """

    def __init__(self, origins: Origins) -> None:
        self.origins = origins
        self.unsure: set[Key] = set()
        self._found: list[tuple[Origin, Fault]] = []

    def add(
        self, key: Key, problem: str, hint: str = "", at: Origin | None = None, *, unsure: bool = True
    ) -> None:
        """Record a fault of a key; its place is that of the key unless told.

        A fault of the whole, or one that is told not to, leaves the values as sure as they were.
        """
        origin = at or self.origins.of(key)
        fault = Fault(key=dotted(key), problem=problem, origin=str(origin), hint=hint)
        if unsure and key:
            self.unsure.add(key)
        self._found.append((origin, fault))

    def doubts(self, keys: Iterable[Key]) -> bool:
        """Whether a fault lies at, within or around one of these keys."""
        return any(covers(key, unsure) for key in keys for unsure in self.unsure)

    def raise_any(self) -> None:
        """Raise all faults as one ConfigError, by place, then key; return where there are none."""
        if self._found:
            found = sorted(self._found, key=lambda pair: (pair[0], pair[1].key))
            raise ConfigError([fault for _, fault in found])


def nearest(name: str, valid: Iterable[Any]) -> str | None:
    """The valid name that a misspelt one most likely means, if there is one."""
    # Only wanted when something is wrong.
    from difflib import get_close_matches

    matches = get_close_matches(name, [str(each) for each in valid], n=1)
    return matches[0] if matches else None


def suggest(name: str, valid: Iterable[Any]) -> str:
    """A hint for a name that is not valid: the nearest one, or all."""
    names = [str(each) for each in valid]
    match = nearest(name, names)
    if match:
        return f"did you mean {match}?"
    return f"valid: {', '.join(names)}" if names else ""
