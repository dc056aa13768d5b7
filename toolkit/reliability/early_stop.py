"""Requests to stop that come too early, or to a process that saves nothing. Imports nothing slow."""

from __future__ import annotations

import signal
from types import FrameType

#: SIGTERM, and the warning that a scheduler may send before it.
_REQUESTS = (signal.SIGTERM, signal.SIGUSR2)


def hold_back() -> None:
    """Hold requests back, which would end this process, until StopFlag.install or `interrupt_on_request`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _REQUESTS)


def interrupt_on_request(*signals: signal.Signals) -> None:
    """Let the first request, also one that was held back, raise KeyboardInterrupt.

    signals   those that are a request; without any: all
    """
    for number in signals or _REQUESTS:
        signal.signal(number, _interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals or _REQUESTS)


def _interrupt(number: int, frame: FrameType | None) -> None:
    # A scheduler repeats itself: the next one must not interrupt what the first has begun.
    for each in _REQUESTS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
