"""Checkpoints: copied in the step, written by a thread, complete or absent, verified when loaded.

Training waits for the copy alone (staging.py); a thread writes the files and gives them their name
(commit.py). A load takes the newest that verifies (choice.py, manifest.py).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from toolkit.attempts.ledger import read_attempts
from toolkit.checkpoint.carrying import carry
from toolkit.checkpoint.choice import Choice, choose
from toolkit.checkpoint.commit import clear_leftovers, commit, link, prune
from toolkit.checkpoint.interval import Clock
from toolkit.checkpoint.loading import load, load_weights
from toolkit.checkpoint.manifest import Identity, Note, is_sound, verify, wait_for_manifest
from toolkit.checkpoint.pace import Pace
from toolkit.checkpoint.staging import Staging
from toolkit.distributed import Group
from toolkit.errors import CheckpointError
from toolkit.failure import fence
from toolkit.faults import Faults
from toolkit.files import read_json_lines
from toolkit.rundir import RunDir
from toolkit.state import TrainState

__all__ = ["Checkpoints", "Identity", "load", "load_weights", "verify"]

#: Seconds between two looks at the writer while training waits for it.
_LOOK_S = 1.0

log = logging.getLogger("toolkit")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Save:
    """One save under way.

    started   monotonic time at which it was asked for
    waited_s  seconds that it waited for the one before
    stall_s   seconds that training waited for the copy
    """

    step: int
    best_step: int | None
    needed: bool
    started: float
    waited_s: float
    stall_s: float


class Checkpoints:
    """The checkpoints of one run. Rank 0 writes them; on the others saving does nothing.

    beat    called now and then while training waits for a write that goes on
    faults  what the tests do to a save
    """

    def __init__(
        self,
        run: RunDir,
        group: Group,
        identity: Identity,
        keep: int,
        note: Note,
        every_minutes: float | None = None,
    ) -> None:
        self.beat: Callable[[], None] = lambda: None
        self.faults: Faults | None = None
        self._run = run
        self._group = group
        self._identity = identity
        self._keep = keep
        self._note = note
        self._staging = Staging()
        self._clock = Clock(every_minutes, note)
        self._reserver: threading.Thread | None = None
        self._writer: threading.Thread | None = None
        # A needed save that failed, with the reason; its bytes are still staged.
        self._unsaved: tuple[_Save, str] | None = None
        self._fenced: fence.Fenced | None = None
        self._failures = 0
        self._skipped = False
        self._moves = 0
        self._pace = Pace()
        self._seconds: deque[float] = deque(maxlen=20)

    @property
    def seconds(self) -> float:
        """Seconds from asking for a save until it lies on the disk, if training waits for it.

        The longest of the latest ones.
        """
        return max(self._seconds, default=0.0)

    @property
    def is_writing(self) -> bool:
        """Whether a save is being written."""
        return self._writer is not None and self._writer.is_alive()

    def reserve(self, state: TrainState) -> None:
        """Make room for copies of this state, in the background; the first call counts. Rank 0 alone does.

        Called after a step, for an optimizer has no state before: memory that is touched for the first
        time costs several times the copy itself.
        """
        if self._reserver is None and self._writer is None and self._group.world.is_main:
            self._staging.reserve(state)
            self._reserver = threading.Thread(target=self._staging.touch, name="reserve", daemon=True)
            self._reserver.start()

    def is_due(self) -> bool:
        """Whether it is time for a save between those of the calendar. On rank 0; elsewhere never."""
        return self._group.world.is_main and not self.is_writing and self._clock.is_due()

    def save(self, state: TrainState, *, needed: bool = True) -> None:
        """Copy this step's state; a thread writes it. Rank 0 alone does; not collective.

        A save that is not needed is left out while another one is being written; one that is needed
        waits for it. One that fails ends nothing: it is noted, the checkpoints before it are untouched.
        No checkpoint is written while the best one that it refers to could not be.
        Raises Fenced where a later start has replaced this one.
        """
        if not self._group.world.is_main:
            return
        called = time.monotonic()
        if self.is_writing and not needed:
            self._skip(state.progress.step)
            return
        self._join()
        self._check_fence()
        self._clock.begun()
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
            )
        )

    def wait(self) -> None:
        """Return when what was saved last lies on the disk.

        Raises CheckpointError where what was needed does not, and Fenced.
        """
        self._join()
        # Once more, at once: the fault may have been a passing one, and there will be no other chance.
        self._retry()
        self._join()
        self._check_fence()
        if self._unsaved is not None:
            save, reason = self._unsaved
            raise CheckpointError(f"cannot write {self._run.checkpoint(save.step)}: {reason}")

    def close(self) -> None:
        """Let a write under way come to its end, whatever that is."""
        self._join()

    def load_latest(self, state: TrainState) -> bool:
        """Load the newest checkpoint that verifies; False where there is none at all. Collective.

        Rank 0 decides and tells the others, and all must see the same manifest. Raises CheckpointError
        where there are checkpoints but all are bad: starting from nothing would throw the work away
        silently.
        """
        world = self._group.world
        choice = self._group.agree(self._start_up() if world.is_main else None)
        if choice is None:
            return False
        if choice.step is None:
            raise CheckpointError(
                f"all checkpoints in {self._run.checkpoints} are damaged (events.jsonl says how); "
                "refusing to start from scratch. Move the folder away, or use --fresh, to do that."
            )
        folder = self._run.checkpoint(choice.step)
        carry(folder, self._group)
        wait_for_manifest(folder, choice.manifest_crc32)
        # Each host reads the files through a cache of its own.
        if world.local_rank == 0 and not world.is_main:
            verify(folder, None if choice.forced else self._identity)
        load(folder, state)
        if choice.best_lost:
            state.progress.best_value = state.progress.best_step = None
            state.progress.since_best = 0
        return True

    def _start_up(self) -> Choice | None:
        clear_leftovers(self._run)
        self._seconds.extend(_earlier_seconds(self._run))
        return choose(self._run, self._identity, self._note)

    # -- writing -----------------------------------------------------------------------------
    def _skip(self, step: int) -> None:
        """Leave a save out, and say so once for all in a row."""
        if not self._skipped:
            self._note("save_skipped", step=step, reason="the one before is still being written")
        self._skipped = True

    def _join(self) -> None:
        self._pace.hurry()
        while self._writer is not None and self.is_writing:
            moves = self._moves
            self._writer.join(_LOOK_S)
            if self._moves != moves:
                self.beat()

    def _permit(self) -> None:
        """Raise Fenced where another start has replaced this one."""
        fence.check(self._run, self._group.world.nonce)

    def _check_fence(self) -> None:
        if self._fenced is not None:
            raise self._fenced

    def _best_is_saved(self, state: TrainState, needed: bool) -> bool:
        """Try again what could not be saved, if this state refers to it as the best."""
        if self._unsaved is None or self._unsaved[0].step != state.progress.best_step:
            self._unsaved = None
            return True
        self._retry()
        if not needed:
            # In place of the one that was asked for, so that training does not wait.
            return False
        self._join()
        return self._unsaved is None

    def _retry(self) -> None:
        """Write once more what is still staged."""
        if self._unsaved is not None:
            self._start(replace(self._unsaved[0], started=time.monotonic(), waited_s=0.0))

    def _start(self, save: _Save) -> None:
        self._skipped = False
        self._pace.relax()
        self._writer = threading.Thread(target=self._write, args=(save,), name="checkpoint", daemon=True)
        self._writer.start()

    def _write(self, save: _Save) -> None:
        """What the thread does. Nothing that happens here ends the run."""
        begun = time.monotonic()
        self._pace.start()
        try:
            self._commit(save)
            # It may have been frozen since: what follows would undo what the start after it has done.
            self._permit()
        except fence.Fenced as error:
            # Not even a line may be written about it.
            self._fenced = error
            return
        except Exception as error:
            self._failed(save, getattr(error, "strerror", None) or f"{type(error).__name__}: {error}")
            return
        now = time.monotonic()
        self._unsaved, self._failures = None, 0
        self._seconds.append(now - save.started - self._pace.paused_s)
        self._note(
            "save",
            step=save.step,
            seconds=round(now - save.started, 4),
            stall_s=round(save.stall_s, 4),
            waited_s=round(save.waited_s, 4),
            write_s=round(now - begun, 4),
            paused_s=round(self._pace.paused_s, 4),
            bytes=self._staging.size,
        )
        self._tidy(save, now - begun - self._pace.paused_s)

    def _commit(self, save: _Save) -> None:
        target = self._run.checkpoint(save.step)
        if is_sound(target, self._identity):
            return
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
        )

    def _failed(self, save: _Save, reason: str) -> None:
        self._failures += 1
        self._unsaved = (save, reason) if save.needed else None
        self._clock.failed()
        target = self._run.checkpoint(save.step)
        self._note("save_failed", step=save.step, reason=f"{target}: {reason}", failures=self._failures)
        log.warning("cannot write %s: %s; those before it are untouched", target, reason)

    def _tidy(self, save: _Save, write_s: float) -> None:
        """Interval, links, retention. What goes wrong here does not make the checkpoint a worse one."""
        try:
            self._clock.saved(save.stall_s, write_s, self._earlier_attempts())
            link(self._run, save.step, save.best_step)
            prune(
                self._run,
                self._keep,
                save.best_step,
                self._group.world.nonce,
                lambda point: self._at(point, save.step),
                self._permit,
            )
        except fence.Fenced as error:
            self._fenced = error
        except Exception as error:
            self._note("tidy_failed", step=save.step, reason=f"{type(error).__name__}: {error}")
            log.warning("cannot tidy %s: %s", self._run.checkpoints, error)

    def _at(self, point: str, step: int) -> None:
        self._moves += 1
        if self.faults is not None:
            self.faults.at(f"save:{point}", step)
        if point == "write":
            # Leaves the machine to training for a while, unless that waits.
            self._pace.pause()

    def _earlier_attempts(self) -> list[dict[str, Any]]:
        nonce = self._group.world.nonce
        return [line for line in read_attempts(self._run) if line.get("nonce") != nonce]


def _earlier_seconds(run: RunDir) -> list[float]:
    """How long the latest saves of earlier starts took, without pauses."""
    saves = deque((line for line in read_json_lines(run.events) if line.get("event") == "save"), maxlen=5)
    return [line["seconds"] - line.get("paused_s", 0.0) for line in saves if "seconds" in line]
