"""Results of a drill: one row for each interruption."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from toolkit.files import crc32, read_json
from toolkit.run.events import Event, read_events
from toolkit.run.run_dir import MANIFEST, PROGRESS, RunDir

#: Checksums of the files of one checkpoint, by name. The manifest is left out: it has the time and the number
#: of processes. None for the progress of a stop that interrupted an evaluation: its score is missing, and the
#: next attempt replaces that file.
Digest = Mapping[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One interruption and the attempt after it.

    what        name of the interruption
    processes   number of processes before and after it
    signals     signals that the ranks received, in order; empty if none was recorded
    left_s      seconds from the first signal until all ranks had saved and ended
    lost_steps  steps that had been done and must be repeated
    back_s      seconds from the start of the processes to the first new step
    away_s      seconds from the interruption to the first new step
    same_bytes  whether the checkpoints after it equal those of the undisturbed run; None without any
    fault       an error; empty without one
    """

    what: str
    processes: str
    signals: tuple[str, ...] = ()
    left_s: float | None = None
    lost_steps: int | None = None
    back_s: float | None = None
    away_s: float | None = None
    same_bytes: bool | None = None
    fault: str = ""

    @property
    def is_good(self) -> bool:
        return self.same_bytes is True and not self.fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A drill's rows, and the interruptions that were not tried, with reasons."""

    cluster: str
    task: str
    folder: str
    rows: list[Row] = field(default_factory=list)
    not_tried: list[str] = field(default_factory=list)

    @property
    def is_passed(self) -> bool:
        return bool(self.rows) and all(row.is_good for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return the output of `stk drill --json`."""
        return {"verdict": "passed" if self.is_passed else "failed", **asdict(self)}


def digests(run: RunDir) -> dict[int, Digest]:
    """Return the checksums of all checkpoints of a run, by step."""
    return {step: digest(run.checkpoint(step)) for step in run.checkpoint_steps()}


def digest(checkpoint: Path) -> Digest:
    """Return the checksums of a checkpoint, computed from its files, not read from its manifest."""
    found: dict[str, int | None] = {
        file.name: crc32(file) for file in sorted(checkpoint.iterdir()) if file.name != MANIFEST
    }
    progress = (read_json(checkpoint / PROGRESS) or {}).get("progress", {})
    if progress.get("awaits_evaluation"):
        found[PROGRESS] = None
    return found


def is_equal(found: Digest, undisturbed: Digest | None) -> bool:
    """Whether a checkpoint has the same files as that of the undisturbed run, with equal checksums."""
    if undisturbed is None or found.keys() != undisturbed.keys():
        return False
    return all(crc is None or crc == undisturbed[name] for name, crc in found.items())


def is_same(run: RunDir, undisturbed: Mapping[int, Digest], after: int) -> bool | None:
    """Whether all checkpoints from a step on equal the undisturbed run's; None without any after it."""
    found = {step: each for step, each in digests(run).items() if step >= after and step in undisturbed}
    if max(found, default=after) == after:
        return None
    return all(is_equal(each, undisturbed[step]) for step, each in found.items())


def events_between(run: RunDir, name: str, since: float, until: float = math.inf) -> list[Event]:
    """Return the events with a name in a period, oldest first."""
    return [event for event in read_events(run, name) if since <= event.time < until]


def signals_seen(run: RunDir, since: float, until: float = math.inf) -> tuple[str, ...]:
    """Return the names of the signals of a period, of the rank that received the most."""
    seen = [
        [name for name, _ in event.facts["signals"]] for event in events_between(run, "signals", since, until)
    ]
    return tuple(name.removeprefix("SIG") for name in max(seen, key=len, default=[]))
