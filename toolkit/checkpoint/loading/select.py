"""Which checkpoint an attempt resumes from: the newest that verifies, together with its best one.

Without the best checkpoint, a resumed run would differ from an undisturbed one. An older checkpoint whose
best one is intact leads to the same bytes, so it is used instead. If no such checkpoint exists,
the best one is given up.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolkit.checkpoint.checksums import may_pass
from toolkit.checkpoint.paths import keep_damaged
from toolkit.checkpoint.verification import Identity, Note, OtherIdentity, read_progress, verify
from toolkit.errors import CheckpointError
from toolkit.files import crc32
from toolkit.run.events import forced_steps, read_events
from toolkit.run.run_dir import MANIFEST, RunDir

#: Saves, of the last ones that events.jsonl names, whose folders are looked up.
_RECORDED = 10

log = logging.getLogger("toolkit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The checkpoint that all ranks load, as rank 0 selects it.

    step       its step; None if there are checkpoints, but none can be used
    fault      without a step: the fault of the newest checkpoint, or of one with another identity
    best_lost  whether its best checkpoint is lost and must be forgotten
    forced     whether it may belong to another experiment or other data
    """

    step: int | None
    fault: str = ""
    manifest_crc32: int = 0
    best_lost: bool = False
    forced: bool = False


def select_checkpoint(run: RunDir, identity: Identity, note: Note) -> Selection | None:
    """The checkpoint to resume from; None without any.

    The log and the events name each rejected one with the reason. Newer ones are set aside; if the best one
    is given up, older ones as well. None is taken that is older than one with another identity: the work
    since then would silently be lost.
    """
    steps = _steps_of(run)
    examined = _Examined(run, identity)
    without_best = None
    for step in reversed(steps):
        fault = examined.fault(step)
        if fault is None:
            lost = examined.fault_of_best(step)
            if lost is None:
                return _take(run, step, steps)
            without_best = without_best or step
            fault = f"{run.checkpoint(step)} is intact, but the best one that it names is not: {lost}"
        note("checkpoint_rejected", step=step, reason=fault)
        log.warning("the checkpoint of step %d is not used: %s", step, fault)
        if step in examined.foreign:
            break
    if without_best is not None:
        return _take_without_best(run, without_best, steps, note)
    refused = max(examined.foreign, default=max(steps, default=None))
    return None if refused is None else Selection(step=None, fault=examined.fault(refused) or "")


def _steps_of(run: RunDir) -> list[int]:
    """The steps of all checkpoints, ascending.

    A network file system may list a folder as it was a minute ago, but shows the newest events, and finds a
    folder by its name.
    """
    saves = (each.facts.get("step") for each in read_events(run, "save"))
    recorded = sorted({step for step in saves if isinstance(step, int)})[-_RECORDED:]
    return sorted({*run.checkpoint_steps(), *(step for step in recorded if run.checkpoint(step).is_dir())})


def _take(run: RunDir, step: int, steps: Sequence[int]) -> Selection:
    # Otherwise they would count as the newest, and new checkpoints would be deleted instead of them.
    for newer in steps[steps.index(step) + 1 :]:
        keep_damaged(run.checkpoint(newer))
    return Selection(
        step=step, manifest_crc32=crc32(run.checkpoint(step) / MANIFEST), forced=step in forced_steps(run)
    )


def _take_without_best(run: RunDir, step: int, steps: Sequence[int], note: Note) -> Selection:
    for older in steps[: steps.index(step)]:
        keep_damaged(run.checkpoint(older))
    note("best_lost", step=step)
    log.warning(
        "the best checkpoint is lost; training continues at step %d and looks for a new best from there", step
    )
    return replace(_take(run, step, steps), best_lost=True)


class _Examined:
    """Verifies checkpoints, each at most once; `foreign` are the steps of those with another identity."""

    def __init__(self, run: RunDir, identity: Identity) -> None:
        self._run = run
        self._identity = identity
        self._forced = forced_steps(run)
        self._faults: dict[int, str | None] = {}
        self.foreign: set[int] = set()

    def fault(self, step: int) -> str | None:
        """The fault of the checkpoint of this step; None if it verifies.

        Raises CheckpointError if it cannot be read now, but perhaps later: it may be intact.
        """
        if step not in self._faults:
            try:
                verify(self._run.checkpoint(step), None if step in self._forced else self._identity)
                self._faults[step] = None
            except CheckpointError as error:
                if may_pass(error):
                    raise
                self._faults[step] = str(error)
                if isinstance(error, OtherIdentity):
                    self.foreign.add(step)
        return self._faults[step]

    def fault_of_best(self, step: int) -> str | None:
        """The fault of the best checkpoint that this one records; None without a fault."""
        best_step = read_progress(self._run.checkpoint(step))["progress"].get("best_step")
        return None if best_step is None else self.fault(best_step)
