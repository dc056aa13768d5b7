"""Requests to leave, and the agreement of a script's ranks on them."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import stat
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from toolkit.exit_codes import ExitCode
from toolkit.reliability.stop import stop_signals
from toolkit.run.fence import is_fenced
from toolkit.workloads.custom.script.children import Protection
from toolkit.workloads.custom.script.misuse import misuse
from toolkit.workloads.custom.script.place import Place
from toolkit.workloads.custom.script.ranks import group, largest
from toolkit.workloads.custom.script.waiting import wait_for_ranks

#: Seconds between two agreements of the ranks.
_AGREE_EVERY_S = 1.0
#: Most calls between two agreements: steps may suddenly become slower.
_MOST_CALLS = 64
#: The signals that ask a script in a run to leave.
_REQUESTS = (signal.SIGTERM, signal.SIGUSR2)


class Signals:
    """Notes that a signal has asked this process to leave."""

    def __init__(self) -> None:
        self.came = False
        self._newest: int | None = None
        self._before: dict[int, Any] = {}
        self._parent = os.getppid()
        self._owner = os.getpid()
        self._place: Place | None = None
        self._children: Protection | None = None

    def install(self, place: Place) -> None:
        """Catch signals from now on, and call the previous handlers; does nothing outside the main thread."""
        if self._before or threading.current_thread() is not threading.main_thread():
            return
        if _is_child_that_imports():
            # SIGTERM must end it, because `Pool.terminate` waits for that. A rank that the script has started
            # in this way catches signals from its first `should_stop` on. The early warning is not for it.
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
            return
        self._place = place
        numbers = stop_signals() if place.watcher is None else _REQUESTS
        for number in numbers:
            self._before[number] = signal.signal(number, self._handle)
        self._children = Protection(self._before)

    def ignore(self) -> None:
        """Ignore requests to leave from now on; called when the script in a run ends.

        Python removes its handlers before it frees the script's objects, which may take seconds. A request
        would then kill a script that has finished, and the run would start again. Leaves alone what
        another handler has taken over, and does nothing in a process that was forked.
        """
        if os.getpid() != self._owner:
            return
        for number in _REQUESTS:
            if number in self._before and signal.getsignal(number) == self._handle:
                signal.signal(number, signal.SIG_IGN)

    def begin_again(self) -> bool:
        """Catch SIGINT again if a kernel has set its handler, as before each cell; return whether it has."""
        if signal.SIGINT not in self._before or threading.current_thread() is not threading.main_thread():
            return False
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return False
        signal.signal(signal.SIGINT, self._handle)
        return True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if (place := self._place) is not None and place.watcher is not None:
            is_dead = self._is_dead(place.watcher)
            if is_dead and not _waits(place):
                # The run may already have been restarted.
                os._exit(128 + number)
            # All processes that a command of rank 0 starts may have its pipe; the other ranks have files.
            _mend_output(place.run.log(place.nonce, 0), is_dead)
        if number == signal.SIGINT and self.came:
            if hasattr(sys, "ps1"):
                # Only the cell ends: a session has more than the training. SIGTERM still counts.
                self.came = self._newest != signal.SIGINT
                raise KeyboardInterrupt
            os._exit(ExitCode.INTERRUPTED)
        self.came, self._newest = True, number
        before = self._before[number]
        if callable(before) and before is not signal.default_int_handler:
            before(number, frame)

    def _is_dead(self, watcher: int) -> bool:
        """Whether the process of `stk` that watched this one is dead. A wrapper between them may end."""
        if os.getpid() != self._owner:
            return False
        has_new_parent = os.getppid() != self._parent
        if watcher == self._parent:
            # Until its last thread has ended, it remains the parent. It may be another user's.
            return has_new_parent or _is_zombie(watcher)
        return has_new_parent and not _lives(watcher)


def _waits(place: Place) -> bool:
    """Whether a process of `stk` lets this attempt save before it starts the next one."""
    return place.restarter is not None and _lives(place.restarter) and not is_fenced(place.run, place.nonce)


def _mend_output(log: Path, is_dead: bool) -> None:
    """Write rank 0's output into its log from now on if the process that copied it there is dead.

    is_dead  whether that is known; its end of the pipe may still be open for a moment
    """
    for number in (1, 2):
        with suppress(OSError):
            if stat.S_ISFIFO(os.fstat(number).st_mode) and (is_dead or _has_no_reader(number)):
                with log.open("ab", buffering=0) as file:
                    os.dup2(file.fileno(), number)


def _has_no_reader(pipe: int) -> bool:
    outputs = select.poll()
    outputs.register(pipe, 0)
    return any(event & select.POLLERR for _, event in outputs.poll(0))


def _lives(process: int) -> bool:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process, 0)
        return not _is_zombie(process)
    return False


def _is_zombie(process: int) -> bool:
    """Whether a process has ended and is still listed; False where that cannot be seen."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[:1] == [b"Z"]
    return False


def _is_child_that_imports() -> bool:
    """Whether this process was started by multiprocessing, not forked, and executes the script again now."""
    return getattr(multiprocessing.current_process(), "_inheriting", False)


class Agreement:
    """Decides together with the other ranks whether to stop.

    Each agreement determines the number of calls until the next one, from the time per call of the slowest
    rank. So all ranks agree at the same call. A process without a group goes by the time.
    """

    def __init__(self, signals: Signals, stop_file: Path | None) -> None:
        self._signals = signals
        self._stop_file = stop_file
        self._is_agreed = False
        self._calls = 0
        self._next = 1
        self._since: float | None = None
        self._evaluates = False
        self._has_waited = False

    def should_stop(self, every: int | None, *, evaluates: bool = False) -> bool:
        """Return whether to save and leave. Collective. Raises UserError if `every` is below 1.

        evaluates  whether the call follows a batch of an evaluation, which may be faster than a step
        """
        if every is not None and every < 1:
            raise misuse(f"run.should_stop(every={every!r})", "expected a number of calls, at least 1")
        if evaluates != self._evaluates:
            self._evaluates, self._next, self._since = evaluates, 1, None
        self._calls += 1
        if not self._is_agreed and self._is_due(every):
            self._agree()
        return self._is_agreed

    def _is_due(self, every: int | None) -> bool:
        if every is not None or group() is not None:
            return self._calls >= (every or self._next)
        return self._signals.came or self._since is None or time.monotonic() - self._since >= _AGREE_EVERY_S

    def _agree(self) -> None:
        now = time.monotonic()
        call_s = 0.0 if self._since is None else (now - self._since) / self._calls
        if not self._has_waited and group() is not None:
            # Once: it takes some messages per rank, and a script makes the same calls in each step.
            wait_for_ranks("run.should_stop()", "All ranks have to call it.")
            self._has_waited = True
        asked, slowest_s = largest(float(self.is_asked()), call_s)
        self._is_agreed = asked > 0
        self._next = min(_MOST_CALLS, max(1, int(_AGREE_EVERY_S / slowest_s))) if slowest_s > 0 else 1
        self._calls, self._since = 0, now

    def begin_again(self) -> None:
        """Forget a request to leave that `should_stop` has answered, or that came in an earlier cell."""
        if self._signals.begin_again() or self._is_agreed:
            self._is_agreed = self._signals.came = False

    def is_asked(self) -> bool:
        """Return whether this rank is asked to leave, or the ranks have agreed to. Not collective."""
        is_told = self._stop_file is not None and os.path.exists(self._stop_file)
        return self._is_agreed or self._signals.came or is_told
