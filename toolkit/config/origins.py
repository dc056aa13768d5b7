"""Keys of an experiment's tree, and where each was written."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

#: Path of a value in the tree; an index of a list is written as text.
Key = tuple[str, ...]


class _Unknown(Enum):
    """Type of UNKNOWN, which survives copying."""

    UNKNOWN = "unknown"


#: Replaces a value that could not be composed; its fault is recorded, so checks skip it.
UNKNOWN: Final = _Unknown.UNKNOWN


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """The origin of a key: a file and its line, counted from 1; 0 without a line."""

    place: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.place}:{self.line}" if self.line else self.place


COMMAND_LINE = Origin("command line")


def dotted(key: Key) -> str:
    """A key as people write it; parts that would break the message are quoted."""
    return ".".join(part if part.isprintable() and part else repr(part) for part in key)


def leaves(value: Any, key: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield each value in a tree that is neither a mapping nor a list, with its key; an index is a number."""
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*key, name))
    else:
        yield key, value


def index_in(part: str) -> int | None:
    """The index of a list that a part of a key means; None if it is not an index."""
    if not (part.isascii() and part.isdecimal()):
        return None
    # Python cannot read a number of 5,000 digits, and no list is that long.
    return int(part) if len(part) < 10 else sys.maxsize


def no_index(key: Key, length: int) -> str:
    """Say why a part of a key is not an index of the list at `key`."""
    return f"{dotted(key)} is a list, expected an index from 0 to {length} (the last one appends)"


def covers(one: Key, other: Key) -> bool:
    """Whether two keys are equal or one is within the other."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


class Origins:
    """The origin of every key; a key that was not written has the origin of the section around it."""

    def __init__(self, root: Origin) -> None:
        self._origins: dict[Key, Origin] = {(): root}
        self._begun: set[Key] = set()

    def of(self, key: Key) -> Origin:
        """The origin of a key, or of the nearest section around it."""
        while key not in self._origins:
            key = key[:-1]
        return self._origins[key]

    def is_written(self, key: Key) -> bool:
        """Whether a key was written, or is in a value that was written as a whole, such as a reference."""
        if key in self._origins:
            return True
        while key not in self._origins:
            key = key[:-1]
        return key != () and not any(covers(key, known) and len(known) > len(key) for known in self._origins)

    def put(self, key: Key, origin: Origin) -> None:
        """Record where a key was written."""
        self._origins[key] = origin

    def forget(self, key: Key) -> None:
        """Drop the origins within a key, because its value is replaced."""
        within = [known for known in self._origins if known[: len(key)] == key and known != ()]
        for known in within:
            del self._origins[known]
        self._begun = {known for known in self._begun if known[: len(key)] != key}

    def begin(self, key: Key) -> None:
        """Record that an override of an entry began a value, as `betas.0=0.8` if no `betas` is written.

        It is a mapping until the type or the default of its key shows whether it is a list.
        """
        self._begun.add(key)

    def is_begun(self, key: Key) -> bool:
        """Whether an override of an entry began a value."""
        return key in self._begun
