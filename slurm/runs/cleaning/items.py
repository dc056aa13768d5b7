"""Items to delete, items to keep, and the wishes of the user."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toolkit.run.run_dir import RunDir

#: States of runs that nothing happens to any more by itself.
ENDED = ("finished", "failed", "cancelled", "held")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The wishes of the user.

    keep_last     newest checkpoints of each run that stay, besides the best
    older_than_s  younger ones stay
    states        runs in other states are left alone
    logs, old     whether also logs of earlier starts, and runs that were set aside
    """

    keep_last: int = 1
    older_than_s: float = 0.0
    states: tuple[str, ...] = ENDED
    logs: bool = False
    old: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that may go.

    kind   checkpoint, leftover, logs or old
    what   in words
    paths  what is deleted: one folder, or the files of logs
    """

    run: RunDir
    kind: str
    what: str
    paths: tuple[Path, ...]
    bytes: int
    age_s: float

    def to_json(self) -> dict[str, object]:
        """Return the entry of `stk clean --json`."""
        return {
            "run_id": self.run.run_id,
            "kind": self.kind,
            "what": self.what,
            "paths": [str(path) for path in self.paths],
            "bytes": self.bytes,
            "age_s": round(self.age_s),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An item that is kept, and why: a whole run, or one checkpoint."""

    run_id: str
    what: str
    why: str

    def to_json(self) -> dict[str, object]:
        """Return the entry of `stk clean --json`."""
        return {"run_id": self.run_id, "what": self.what, "why": self.why}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Items to delete and items to keep, of all runs."""

    items: tuple[Item, ...]
    kept: tuple[Kept, ...]

    @property
    def bytes(self) -> int:
        return sum(item.bytes for item in self.items)
