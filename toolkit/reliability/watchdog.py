"""The watchdog: a thread in each rank that writes its heartbeat and finds the rank that hangs.

It ends the process if another attempt has replaced this one (fence.py). If this rank makes no progress for
too long, it reads the heartbeats of the others: the culprit is a rank whose heartbeat has stopped, or one
that hangs without waiting for the others. The stacks of all threads go to the logs, the culprit to
failure.json, and the ranks exit; a new attempt resumes from the last checkpoint.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from toolkit.exit_codes import ExitCode
from toolkit.files import read_object, write_view
from toolkit.reliability.heartbeat import Heartbeat, culprit_of, format_hang, suspicion
from toolkit.run.failure.classes import HANG
from toolkit.run.failure.records import failure_record, first_failure, last_heartbeat, write_first
from toolkit.run.fence import leave_if_fenced
from toolkit.run.records.from_json import from_json
from toolkit.run.run_dir import RunDir
from toolkit.system.host import boot
from toolkit.system.world import World

_LONGEST_PERIOD_S, _SHORTEST_PERIOD_S = 15.0, 0.1

#: Seconds without a heartbeat that are normal: the import of a library can block all threads for that long.
_SILENCE_S = 3.0

log = logging.getLogger("toolkit")


def period_s(hang_timeout_s: float) -> float:
    """Seconds between two heartbeats: twenty in the time after which a rank counts as hanging."""
    return min(_LONGEST_PERIOD_S, max(_SHORTEST_PERIOD_S, hang_timeout_s / 20))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """The activity of a rank.

    beats            grows with all work
    limit_s          seconds after which it hangs if beats does not grow; None for no limit
    failure_context  its GPU, batch and memory, recorded if it is killed
    """

    phase: str
    step: int
    beats: int = 0
    limit_s: float | None = None
    failure_context: Mapping[str, Any] = field(default_factory=dict)


class Watchdog:
    """Watches this rank, and the others while this one makes no progress. Use as a context manager.

    pulse      returns the activity of this rank; called in the thread
    """

    def __init__(self, run: RunDir, world: World, hang_timeout_s: float, pulse: Callable[[], Pulse]) -> None:
        self._run = run
        self._world = world
        self._pulse = pulse
        self._period_s = period_s(hang_timeout_s)
        self._main = threading.main_thread().ident
        self._woken, self._has_ended = threading.Event(), False
        self._thread = threading.Thread(target=self._work, name="watchdog", daemon=True)
        self._count = 0
        self._beats = -1
        self._looked = time.monotonic()
        self._still_s = 0.0
        self._has_dumped = False
        # The heartbeats of the others as last read, and the time of their last change.
        self._views: dict[int, tuple[Mapping[str, Any], float]] = {}

    def __enter__(self) -> Watchdog:
        self._run.heartbeat(self._world.nonce, self._world.rank).parent.mkdir(parents=True, exist_ok=True)
        # Before any other write: this process may have been frozen since its start.
        leave_if_fenced(self._run, self._world.nonce)
        self._write(self._look())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended = True
        self.beat()
        self._thread.join()

    def beat(self) -> None:
        """Make the thread write the heartbeat now, as when a phase begins that views show."""
        self._woken.set()

    def _work(self) -> None:
        while True:
            self._woken.wait(self._period_s)
            self._woken.clear()
            if self._has_ended:
                return
            try:
                leave_if_fenced(self._run, self._world.nonce)
                own = self._look()
                self._write(own)
                self._judge(own)
            except Exception:
                log.exception("error in the watchdog, which continues")

    # -- the heartbeat of this rank

    def _look(self) -> Heartbeat:
        pulse, now = self._pulse(), time.monotonic()
        passed_s, self._looked = now - self._looked, now
        if passed_s > 10 * max(1.0, self._period_s):
            # The process or its machine was suspended: the time starts again.
            passed_s = self._still_s = 0.0
            self._views.clear()
        self._still_s += passed_s
        if pulse.beats != self._beats or pulse.limit_s is None:
            self._beats, self._still_s, self._has_dumped = pulse.beats, 0.0, False
            self._views.clear()
        still_s = self._still_s
        frames: list[FrameType] = []
        if pulse.limit_s is not None and still_s > pulse.limit_s / 2:
            frames = _frames(self._main)
        return Heartbeat(
            rank=self._world.rank,
            host=socket.gethostname(),
            phase=pulse.phase,
            step=pulse.step,
            still_s=still_s,
            limit_s=pulse.limit_s,
            waits=_is_waiting(frames),
            failure_context=pulse.failure_context,
            place=_place(frames),
            stack="".join(traceback.format_stack(frames[0])) if frames else "",
        )

    def _write(self, own: Heartbeat) -> None:
        self._count += 1
        path = self._run.heartbeat(self._world.nonce, self._world.rank)
        content = {
            "rank": own.rank,
            "host": own.host,
            "boot": boot(),
            "pid": os.getpid(),
            "time": time.time(),
            "count": self._count,
            "beats": self._beats,
            "phase": own.phase,
            "step": own.step,
            "still_s": round(own.still_s, 3),
            "limit_s": own.limit_s,
            "waits": own.waits,
            "place": own.place,
            "stack": own.stack,
            "scene": dict(own.failure_context),
        }
        with suppress(OSError):
            write_view(path, content)

    # -- the others

    def _judge(self, own: Heartbeat) -> None:
        if own.limit_s is None or own.still_s < own.limit_s / 2:
            return
        others = [self._peer(rank, own.limit_s) for rank in range(self._world.size) if rank != own.rank]
        if not own.stands_still:
            return
        if not self._has_dumped:
            # All ranks reach this at about the same time, so all stacks are written before they exit.
            self._dump(own)
        culprit = culprit_of(sorted([own, *others], key=lambda rank: rank.rank))
        if culprit is not None:
            self._leave(own, culprit)

    def _peer(self, rank: int, limit_s: float) -> Heartbeat:
        """The heartbeat of another rank; it is silent if it has not changed for long."""
        now = time.monotonic()
        known, since = self._views.setdefault(rank, ({}, now))
        content = read_object(self._run.heartbeat(self._world.nonce, rank))
        if content and content != known:
            known, since = self._views[rank] = content, now
        # The peer's own limit may be longer, and a busy machine must not count as silent.
        patience_s = max(0.45 * max(limit_s, known.get("limit_s") or 0.0), 3 * self._period_s, _SILENCE_S)
        is_silent = now - since > patience_s
        return from_json(Heartbeat, {**known, "rank": rank, "is_silent": is_silent})

    def _dump(self, own: Heartbeat) -> None:
        self._has_dumped = True
        log.warning("no progress for %.0f s in %s at step %d", own.still_s, own.phase, own.step)
        with suppress(OSError), open(self._run.log(self._world.nonce, own.rank), "a") as stream:
            stream.write("stacks of all threads:\n")
            stream.flush()
            faulthandler.dump_traceback(stream, all_threads=True)

    def _leave(self, own: Heartbeat, culprit: Heartbeat) -> None:
        """Record the culprit, or wait until another rank has, and end this process."""
        message = format_hang(culprit, self._world.size)
        log.error("%s", message)
        healthy = [rank for rank in range(self._world.size) if rank != culprit.rank]
        if own.rank != min(healthy, default=own.rank):
            self._await_record()
        # The step of a silent rank is unknown; it cannot be less than the one at which this rank waits.
        step = max(own.step, culprit.step)
        if first_failure(self._run, self._world.nonce) is None:
            write_first(self._run, self._record(culprit, message, step))
        # The others do the same, and the launcher ends the remaining ranks after the first exit.
        time.sleep(min(1.0, 2 * self._period_s))
        os._exit(ExitCode.HUNG)

    def _record(self, culprit: Heartbeat, message: str, step: int) -> dict[str, Any]:
        record = failure_record(
            self._world.nonce,
            HANG,
            message,
            rank=culprit.rank,
            host=culprit.host,
            phase=culprit.phase,
            step=step,
            trace=culprit.stack,
        )
        record.update(last_heartbeat(self._run, self._world.nonce, culprit.rank).get("scene", {}))
        # If all ranks wait for each other, no host is to blame.
        is_known = culprit.is_silent or self._world.size == 1 or suspicion(culprit) < 2
        return record if is_known else {**record, "blamed": None}

    def _await_record(self) -> None:
        deadline = time.monotonic() + max(2.0, 4 * self._period_s)
        while time.monotonic() < deadline and first_failure(self._run, self._world.nonce) is None:
            time.sleep(min(0.1, self._period_s))


def _frames(thread: int | None) -> list[FrameType]:
    """The frames of a thread, the innermost first."""
    innermost = sys._current_frames().get(thread or -1)
    return [frame for frame, _ in traceback.walk_stack(innermost)] if innermost else []


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_waiting(frames: Sequence[FrameType]) -> bool:
    """Whether the innermost frames of torch belong to a collective.

    A wait for a collective in progress shows a line of process_group.py: torch's part is C++.
    """
    for frame in frames:
        name = _module(frame)
        if name.startswith(("torch.distributed", "toolkit.distributed.process_group")):
            return True
        if not name.startswith("torch"):
            return False
    return False


def _place(frames: Sequence[FrameType]) -> str:
    """The innermost frame of a thread outside of torch and threading; empty without one."""
    for frame in frames:
        if not _module(frame).startswith(("torch", "threading")):
            name = os.path.basename(frame.f_code.co_filename)
            return f"{name}:{frame.f_lineno}, {frame.f_code.co_name}"
    return ""
