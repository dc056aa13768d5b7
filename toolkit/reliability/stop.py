"""Stop: checked by the loop in each step. StopFlag: signal handlers that only set a flag."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from toolkit.exit_codes import ExitCode

#: Set by the local launcher for its ranks: its process id.
LAUNCHER_VARIABLE = "STK_LAUNCHER"

_PR_SET_PDEATHSIG = 1
#: Loaded here, because little is allowed between fork and exec.
_LIBC = ctypes.CDLL(None)


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that stop a process outside of Slurm.

    SIGTERM, SIGUSR2 (a scheduler's warning), Ctrl-C, and a closed terminal; the last one not under `nohup`,
    which ignores it.
    """
    ignores_hangup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    hangup = () if ignores_hangup else (signal.SIGHUP,)
    return (signal.SIGTERM, signal.SIGUSR2, signal.SIGINT, *hangup)


class Stop(Protocol):
    """Decides whether training has to stop; training knows nothing else about preemption."""

    def reason_to_stop(self, lead_s: float, *, is_measured: bool = True) -> str | None:
        """The reason to save and leave, or None to continue. Called in each step; must be cheap.

        lead_s       seconds that one more step and a save take
        is_measured  whether lead_s was measured; otherwise it is only an allowance
        """


class StoppedEarly(Exception):
    """A rank was asked to stop before this part of the work was done. Raised by all ranks together."""


class NeverStop:
    """A Stop that never requests a stop."""

    def reason_to_stop(self, lead_s: float, *, is_measured: bool = True) -> str | None:
        return None


#: Whether children that are forked now end by SIGTERM.
_children_end = False


def _reset_sigterm() -> None:
    if _children_end:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


os.register_at_fork(after_in_child=_reset_sigterm)


@contextmanager
def children_end_by_sigterm() -> Iterator[None]:
    """Make children that are forked in this block end by SIGTERM, which StopFlag's handler would catch.

    A pool of processes ends its workers with this signal, and waits for them. In training, a worker must
    survive the signal that Slurm sends to all processes, until this one has saved.
    """
    global _children_end
    _children_end = True
    try:
        yield
    finally:
        _children_end = False


class StopFlag:
    """Set by the signals that it catches; a second Ctrl-C ends the process at once."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._interrupted = False

    def install(self, *signals: signal.Signals) -> StopFlag:
        """Catch these signals from now on; only in the main thread."""
        for number in signals:
            signal.signal(number, self._handle)
        # A launcher starts its ranks with these signals blocked, so that none ends them before this.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        return self

    def reason_to_stop(self, lead_s: float = 0.0, *, is_measured: bool = True) -> str | None:
        return self._reason

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            if self._interrupted:
                os._exit(ExitCode.INTERRUPTED)
            self._interrupted = True
        self._reason = self._reason or signal.Signals(number).name


def signal_after_parent(number: signal.Signals) -> None:
    """Make this process get a signal when its parent ends. May be called between fork and exec."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, number)


def stop_with_launcher(environ: Mapping[str, str]) -> None:
    """Make this process get SIGTERM when its launcher dies, or at once if it is already dead.

    Does nothing without a launcher in the environment.
    """
    if LAUNCHER_VARIABLE not in environ:
        return
    signal_after_parent(signal.SIGTERM)
    if environ[LAUNCHER_VARIABLE] != str(os.getppid()):
        os.kill(os.getpid(), signal.SIGTERM)
