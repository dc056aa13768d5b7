"""The faults of an experiment, collected for one message."""

from __future__ import annotations

from collections.abc import Iterable

from toolkit.config.origins import Key, Origin, Origins, covers, dotted
from toolkit.errors import ConfigError, Fault


class Faults:
    """Collects the faults of one experiment, to be raised together.

    unsure  keys whose value is faulty or unknown: rules over several keys skip them
    """

    def __init__(self, origins: Origins) -> None:
        self.origins = origins
        self.unsure: set[Key] = set()
        self._found: list[tuple[Origin, Fault]] = []

    def add(
        self, key: Key, problem: str, hint: str = "", at: Origin | None = None, *, unsure: bool = True
    ) -> None:
        """Record a fault of a key.

        at      where it is, if not where the key was written
        unsure  whether the value of the key cannot be used
        """
        origin = at or self.origins.of(key)
        fault = Fault(key=dotted(key), problem=problem, origin=str(origin), hint=hint)
        if unsure and key:
            self.unsure.add(key)
        self._found.append((origin, fault))

    def doubts(self, keys: Iterable[Key]) -> bool:
        """Whether there is a fault at, within or around one of these keys."""
        return any(covers(key, unsure) for key in keys for unsure in self.unsure)

    def raise_any(self) -> None:
        """Raise all faults as one ConfigError, sorted by place and key, if there are any."""
        if self._found:
            found = sorted(self._found, key=lambda pair: (pair[0], pair[1].key))
            raise ConfigError([fault for _, fault in found])
