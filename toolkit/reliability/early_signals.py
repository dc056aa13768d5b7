"""Stop requests that come too early, or to a process that saves nothing. Imports nothing slow."""

from __future__ import annotations

import signal
from types import FrameType

#: SIGTERM, the warning that a scheduler may send before it, and the one that a person may send.
_REQUESTS = (signal.SIGTERM, signal.SIGUSR2, signal.SIGUSR1)


def hold_back() -> None:
    """Block stop requests, which would end this process, until StopFlag.install or `interrupt_on_request`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _REQUESTS)


def interrupt_on_request(*signals: signal.Signals) -> None:
    """Make the first request, also one that was blocked, raise KeyboardInterrupt.

    signals   the signals that count as requests; all by default
    """
    for number in signals or _REQUESTS:
        # Under nohup, a command outlives its terminal.
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals or _REQUESTS)


def _interrupt(number: int, frame: FrameType | None) -> None:
    # Schedulers and shells repeat signals, which must not interrupt the shutdown that the first one began.
    for each in (*_REQUESTS, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
