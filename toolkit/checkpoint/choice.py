"""Which checkpoint a start goes on from: the newest that verifies, together with the best that it names.

A checkpoint whose best one is lost would end in other results than a run without stops. The one
before leads to the same bytes again, so it comes first; only where there is none either, the best
is given up.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolkit.checkpoint.commit import set_aside
from toolkit.checkpoint.manifest import Identity, Note, read_progress, verify
from toolkit.errors import CheckpointError
from toolkit.events import FORCED
from toolkit.files import crc32, read_json_lines
from toolkit.rundir import MANIFEST, RunDir

log = logging.getLogger("toolkit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What rank 0 tells the others: which checkpoint to load.

    step       None: there are some, and all are bad
    best_lost  whether the best one that it names is lost and must be forgotten
    forced     whether it may be of another experiment or other data
    """

    step: int | None
    manifest_crc32: int = 0
    best_lost: bool = False
    forced: bool = False


def choose(run: RunDir, identity: Identity, note: Note) -> Choice | None:
    """The checkpoint to go on from; None where there is none at all.

    Each one that is passed over is named, with the reason, in the log and the events. The newer
    ones and, where it is given up, the best are put aside.
    """
    steps = run.checkpoint_steps()
    examined = _Examined(run, identity)
    without_best = None
    for step in reversed(steps):
        fault = examined.fault(step)
        if fault is None:
            lost = examined.fault_of_best(step)
            if lost is None:
                return _take(run, step, steps)
            without_best = without_best or step
            fault = f"{run.checkpoint(step)} is sound, but the best one that it names is not: {lost}"
        note("checkpoint_rejected", step=step, reason=fault)
        log.warning("the checkpoint of step %d is not used: %s", step, fault)
    if without_best is not None:
        return _take_without_best(run, without_best, steps, note)
    return Choice(step=None) if steps else None


def _take(run: RunDir, step: int, steps: Sequence[int]) -> Choice:
    # Or they would count as the newest, and what is saved from here on would make room for them.
    for newer in steps[steps.index(step) + 1 :]:
        set_aside(run.checkpoint(newer))
    return Choice(
        step=step,
        manifest_crc32=crc32(run.checkpoint(step) / MANIFEST),
        forced=step in _forced_steps(run),
    )


def _forced_steps(run: RunDir) -> set[int]:
    """Checkpoints of which somebody said that the run is to go on from them, whatever they belong to."""
    events = read_json_lines(run.events)
    return {step for event in events if event.get("event") == FORCED for step in event.get("steps", ())}


def _take_without_best(run: RunDir, step: int, steps: Sequence[int], note: Note) -> Choice:
    for older in steps[: steps.index(step)]:
        set_aside(run.checkpoint(older))
    note("best_lost", step=step)
    log.warning("the best checkpoint is lost; going on from step %d, the best is sought from there on", step)
    return replace(_take(run, step, steps), best_lost=True)


class _Examined:
    """Checkpoints that were verified, each once."""

    def __init__(self, run: RunDir, identity: Identity) -> None:
        self._run = run
        self._identity = identity
        self._forced = _forced_steps(run)
        self._faults: dict[int, str | None] = {}

    def fault(self, step: int) -> str | None:
        """What is wrong with the checkpoint of this step; None where nothing is."""
        if step not in self._faults:
            try:
                verify(self._run.checkpoint(step), None if step in self._forced else self._identity)
                self._faults[step] = None
            except CheckpointError as error:
                self._faults[step] = str(error)
        return self._faults[step]

    def fault_of_best(self, step: int) -> str | None:
        """What is wrong with the best checkpoint that this sound one names."""
        best_step = read_progress(self._run.checkpoint(step))["progress"].get("best_step")
        return None if best_step is None else self.fault(best_step)
