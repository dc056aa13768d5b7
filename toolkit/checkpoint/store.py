"""Checkpoints: copied between steps, written by a thread, complete or absent, verified when loaded.

Training waits only for the copy (staging.py); a thread writes the files and renames the folder (commit.py).
Loading takes the newest checkpoint that verifies (loading/, verification.py).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace

from toolkit.checkpoint.loading.load import has_finite_weights
from toolkit.checkpoint.loading.load_selected import load_selected
from toolkit.checkpoint.paths import keep_damaged, link, prune
from toolkit.checkpoint.save_interval import SaveTimer
from toolkit.checkpoint.state import TrainState
from toolkit.checkpoint.verification import Identity, Note, verifies
from toolkit.checkpoint.writing.commit import commit
from toolkit.checkpoint.writing.staging import Staging
from toolkit.checkpoint.writing.throttle import Throttle
from toolkit.distributed.process_group import Group
from toolkit.errors import CheckpointError
from toolkit.files import fsync_path
from toolkit.reliability.fault_injection import Faults
from toolkit.run import fence
from toolkit.run.attempts.records import read_attempts
from toolkit.run.events import save_events
from toolkit.run.run_dir import RunDir

#: Seconds between two checks of the writer while training waits for it.
_LOOK_S = 1.0
#: Speed of a slow shared disk, for a save that has not been measured.
_SLOW_BYTES_S = 50 << 20

log = logging.getLogger("toolkit")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Save:
    """One save in progress.

    started   monotonic time of the request
    waited_s  seconds that it waited for the previous save
    stall_s   seconds that training waited for the copy
    replaces  whether an earlier save of this step is replaced; if not, the earlier one stays
    """

    step: int
    best_step: int | None
    needed: bool
    started: float
    waited_s: float
    stall_s: float
    replaces: bool = False


class Checkpoints:
    """The checkpoints of one run. Rank 0 writes them; on other ranks saving does nothing.

    heartbeat  called while training waits for a write that makes progress
    faults     injected faults; None for none
    compared   the last step after which the ranks held the same weights; None if these are not compared
    """

    def __init__(
        self,
        run: RunDir,
        group: Group,
        identity: Identity,
        keep: int,
        note: Note,
        every_minutes: float | None = None,
        *,
        faults: Faults | None = None,
        heartbeat: Callable[[], None] = lambda: None,
    ) -> None:
        self.heartbeat = heartbeat
        self.faults = faults
        self.compared: int | None = None
        self._run = run
        self._group = group
        self._identity = identity
        self._keep = keep
        self._note = note
        self._staging = Staging()
        self._timer = SaveTimer(every_minutes, note)
        self._reserver: threading.Thread | None = None
        self._writer: threading.Thread | None = None
        # A needed save that failed, with the error; its bytes are still staged.
        self._unsaved: tuple[_Save, Exception] | None = None
        self._fenced: fence.Fenced | None = None
        self._failures = 0
        self._skipped = False
        self._points_passed = 0
        self._throttle = Throttle()
        self._seconds: deque[float] = deque(maxlen=20)

    @property
    def seconds(self) -> float:
        """Seconds from the request of a save until it is on the disk, if training waits for it.

        The longest of the latest saves; before the first one is done, an estimate for a slow shared disk.
        """
        return max(self._seconds, default=self._staging.size / _SLOW_BYTES_S)

    @property
    def is_measured(self) -> bool:
        """Whether `seconds` was measured."""
        return bool(self._seconds)

    @property
    def is_writing(self) -> bool:
        """Whether a save is being written."""
        return self._writer is not None and self._writer.is_alive()

    def reserve(self, state: TrainState) -> None:
        """Allocate memory for copies of this state in the background, at the first call. Only on rank 0.

        Called after a step, because an optimizer has no state before. The first touch of new memory costs
        several times as much as the copy.
        """
        if self._reserver is None and self._writer is None and self._group.world.is_main:
            self._staging.reserve(state)
            self._reserver = threading.Thread(target=self._staging.touch, name="reserve", daemon=True)
            self._reserver.start()

    def is_due(self) -> bool:
        """Whether a timed save is due, between the scheduled ones. Only on rank 0."""
        return self._group.world.is_main and not self.is_writing and self._timer.is_due()

    def save(self, state: TrainState, *, needed: bool = True, replaces: bool = False) -> None:
        """Copy the state of this step; a thread writes it. Only on rank 0; not collective.

        While another save is being written, one that is not needed is skipped, and a needed one waits. A
        failed save does not end training: it is recorded, and earlier checkpoints stay. No checkpoint is
        written before the best one that it refers to. Raises Fenced if a later attempt has replaced this one.

        replaces  whether an earlier save of this step is replaced
        """
        if not self._group.world.is_main:
            return
        called = time.monotonic()
        if self.is_writing and not needed:
            self._skip(state.progress.step)
            return
        self._join()
        self._check_fence()
        self._timer.begun()
        if not self._best_is_saved(state, needed):
            return
        if self._reserver is not None:
            self._reserver.join()
        copied = time.monotonic()
        self._staging.fill(state)
        now = time.monotonic()
        self._start(
            _Save(
                step=state.progress.step,
                best_step=state.progress.best_step,
                needed=needed,
                started=called,
                waited_s=copied - called,
                stall_s=now - copied,
                replaces=replaces,
            )
        )

    def wait(self) -> None:
        """Wait until the last save is on the disk.

        Raises CheckpointError if a needed save could not be written, and Fenced.
        """
        self._join()
        # One last attempt: the fault may have passed.
        self._retry()
        self._join()
        self._check_fence()
        if self._unsaved is not None:
            save, error = self._unsaved
            path = self._run.checkpoint(save.step)
            raise CheckpointError(f"cannot write {path}: {_reason(error)}") from error

    def set_spoilt_aside(self, names: Collection[str]) -> None:
        """Set aside the checkpoints after the newest one in which these weights are finite. Collective.

        Without such a one all stay: a silent start from scratch would lose the work.
        """

        def newest_finite() -> int:
            steps = sorted(self._run.checkpoint_steps(), reverse=True)
            finite = (step for step in steps if has_finite_weights(self._run.checkpoint(step), names))
            return next(finite, max(steps, default=0))

        self._set_newer_aside(newest_finite, "its weights are not finite")

    def set_uncompared_aside(self) -> None:
        """Set aside the checkpoints after step `compared`: their weights may be wrong. Collective."""
        self._set_newer_aside(lambda: self.compared or 0, "the ranks held different weights afterwards")

    def _set_newer_aside(self, newest_good: Callable[[], int], reason: str) -> None:
        """Set aside the checkpoints after the step that rank 0 finds. Collective."""

        def set_aside() -> None:
            self._join()
            self._permit()
            with suppress(OSError):
                good = newest_good()
                for step in reversed(self._run.checkpoint_steps()):
                    if step > good:
                        keep_damaged(self._run.checkpoint(step))
                        self._note("checkpoint_rejected", step=step, reason=reason)

        self._group.main_first(set_aside)

    def close(self) -> None:
        """Wait for a write in progress, whether it succeeds or not."""
        self._join()

    def load_latest(self, state: TrainState) -> bool:
        """Load the newest checkpoint that verifies; False without any checkpoint. Collective.

        Raises CheckpointError if there are checkpoints but none can be used.
        """
        if self._group.world.is_main:
            # Of earlier attempts, without pauses.
            saves = deque(save_events(self._run), maxlen=5)
            self._seconds.extend(save.work_s for save in saves if save.work_s is not None)
        return load_selected(self._run, self._group, self._identity, self._note, state)

    # -- writing -----------------------------------------------------------------------------
    def _skip(self, step: int) -> None:
        """Skip a save; record an event only for the first of several in a row."""
        if not self._skipped:
            self._note("save_skipped", step=step, reason="the one before is still being written")
        self._skipped = True

    def _join(self) -> None:
        self._throttle.disable()
        seen = -1
        while self._writer is not None and self.is_writing:
            self._writer.join(_LOOK_S)
            if self._points_passed != seen:
                seen = self._points_passed
                self.heartbeat()

    def _permit(self) -> None:
        """Raise Fenced if another attempt has replaced this one."""
        fence.check(self._run, self._group.world.nonce)

    def _check_fence(self) -> None:
        if self._fenced is not None:
            raise self._fenced

    def _best_is_saved(self, state: TrainState, needed: bool) -> bool:
        """Whether the best checkpoint of this state is saved; retries it if its save failed."""
        if self._unsaved is None or self._unsaved[0].step != state.progress.best_step:
            self._unsaved = None
            return True
        self._retry()
        if not needed:
            # Instead of the requested save, so that training does not wait.
            return False
        self._join()
        return self._unsaved is None

    def _retry(self) -> None:
        """Write the save that failed once more; it is still staged."""
        if self._unsaved is not None:
            self._start(replace(self._unsaved[0], started=time.monotonic(), waited_s=0.0))

    def _start(self, save: _Save) -> None:
        self._skipped = False
        self._throttle.enable()
        self._writer = threading.Thread(target=self._write, args=(save,), name="checkpoint", daemon=True)
        self._writer.start()

    def _write(self, save: _Save) -> None:
        """Runs in the thread. No failure here ends the run."""
        begun = time.monotonic()
        self._throttle.start()
        try:
            self._commit(save)
            # This process may have been frozen: continuing would then undo the work of a later attempt.
            self._permit()
        except fence.Fenced as error:
            # A replaced attempt may not even write an event.
            self._fenced = error
            return
        except Exception as error:
            self._failed(save, error)
            return
        now = time.monotonic()
        self._unsaved, self._failures = None, 0
        self._seconds.append(now - save.started - self._throttle.paused_s)
        self._note(
            "save",
            step=save.step,
            seconds=round(now - save.started, 4),
            stall_s=round(save.stall_s, 4),
            waited_s=round(save.waited_s, 4),
            write_s=round(now - begun, 4),
            paused_s=round(self._throttle.paused_s, 4),
            bytes=self._staging.size,
        )
        self._tidy(save, now - begun - self._throttle.paused_s)

    def _commit(self, save: _Save) -> None:
        target = self._run.checkpoint(save.step)
        is_there = verifies(target, self._identity)
        if is_there and not save.replaces:
            return
        # A lost host must not leave a checkpoint without the lines of the steps before it.
        for written in (self._run.metrics, self._run.step_records, self._run.path):
            with suppress(OSError):
                fsync_path(written)
        commit(
            self._staging,
            target,
            {
                "experiment": self._identity.experiment,
                "data": self._identity.data,
                "world_size": self._group.world.size,
            },
            nonce=self._group.world.nonce,
            at=lambda point: self._at(point, save.step),
            permit=self._permit,
            replaces=is_there,
        )

    def _failed(self, save: _Save, error: Exception) -> None:
        self._failures += 1
        self._unsaved = (save, error) if save.needed else None
        self._timer.failed()
        target, reason = self._run.checkpoint(save.step), _reason(error)
        self._note("save_failed", step=save.step, reason=f"{target}: {reason}", failures=self._failures)
        kept = "earlier checkpoints are untouched"
        with suppress(OSError, ValueError):
            kept = f"the newest checkpoint is of step {max(self._run.checkpoint_steps())}"
        # A later one needs as much space, and the end of the run needs the best one.
        if save.step == save.best_step:
            kept += ", and no later step is saved before this one, the best"
        log.warning("cannot write %s: %s; %s", target, reason, kept)

    def _tidy(self, save: _Save, write_s: float) -> None:
        """Update interval and links, delete old checkpoints. A failure here does not harm the new one."""
        nonce = self._group.world.nonce
        try:
            earlier = [each for each in read_attempts(self._run) if each.nonce != nonce]
            self._timer.saved(save.stall_s, write_s, earlier)
            link(self._run, save.step, save.best_step)
            prune(
                self._run,
                self._keep,
                save.best_step,
                self.compared,
                nonce,
                lambda point: self._at(point, save.step),
                self._permit,
            )
        except fence.Fenced as error:
            self._fenced = error
        except Exception as error:
            self._note("tidy_failed", step=save.step, reason=f"{type(error).__name__}: {error}")
            log.warning("cannot tidy %s: %s", self._run.checkpoints, error)

    def _at(self, point: str, step: int) -> None:
        self._points_passed += 1
        if self.faults is not None:
            self.faults.at(f"save:{point}", step)
        if point == "write":
            # Leave the machine to training for a moment, unless training waits.
            self._throttle.pause()


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
