"""Stop: the question that the loop asks in each step; StopFlag: signals become a flag, and nothing else."""

from __future__ import annotations

import ctypes
import os
import signal
from types import FrameType
from typing import Protocol

_PR_SET_PDEATHSIG = 1


class Stop(Protocol):
    """All that training knows of preemption."""

    def reason(self, lead_s: float) -> str | None:
        """Why to save and leave, or None to go on. Called in each step; must be cheap.

        lead_s is how long one more step and a save take here, as measured.
        """


class StopFlag:
    """Asked to stop by SIGTERM or Ctrl-C; a second Ctrl-C ends the process at once."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._interrupted = False

    def install(self, *signals: signal.Signals) -> StopFlag:
        """Catch these signals from now on; only in the main thread."""
        for number in signals:
            signal.signal(number, self._handle)
        # A launcher starts its ranks with the signals held back, so that none ends them before this.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        return self

    def reason(self, lead_s: float = 0.0) -> str | None:
        return self._reason

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            if self._interrupted:
                os._exit(130)
            self._interrupted = True
        self._reason = self._reason or signal.Signals(number).name


def stop_with_parent() -> None:
    """Get SIGTERM when the launcher dies, however it dies (Linux only; elsewhere nothing)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
