"""Durations of saves in existing runs, from their events."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from toolkit.run.events import SaveEvent, last_events
from toolkit.run.records.from_json import from_json
from toolkit.run.run_dir import RunDir, find_runs

#: Number of runs, and bytes of events of each, that are read: the newest saves are relevant.
_RUNS, _TAIL_BYTES = 20, 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Saves:
    """Saves of the newest runs: seconds until they were on the disk, without pauses of the writer.

    longest_run   the run with the longest save
    """

    runs: int
    saves: int
    median_s: float
    longest_s: float
    longest_run: str


def measured_saves(experiments: Path) -> Saves | None:
    """Return the durations of saves in the newest runs below a folder; None if none was measured."""
    dated = []
    with suppress(OSError):
        for run in find_runs(experiments):
            with suppress(OSError):
                dated.append((run.events.stat().st_mtime, run.run_id, run))
    newest = [run for _, _, run in heapq.nlargest(_RUNS, dated)]
    found = [(run, seconds) for run in newest for seconds, _ in saves_of(run)]
    if not found:
        return None
    longest = max(found, key=lambda save: save[1])
    return Saves(
        runs=len({run.run_id for run, _ in found}),
        saves=len(found),
        median_s=median(seconds for _, seconds in found),
        longest_s=longest[1],
        longest_run=longest[0].run_id,
    )


def saves_of(run: RunDir) -> Iterator[tuple[float, int]]:
    """Yield seconds and bytes of the latest saves of a run."""
    for event in last_events(run, _TAIL_BYTES):
        save = from_json(SaveEvent, event.facts)
        if event.name == "save" and save.work_s is not None and save.bytes:
            yield save.work_s, save.bytes
