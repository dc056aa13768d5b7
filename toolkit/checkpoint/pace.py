"""The pace of a background writer: pauses in proportion to its work, unless somebody waits for it."""

from __future__ import annotations

import threading
import time

#: A pause lasts so many times as long as the work before it. The writer takes a core, and bandwidth of the
#: memory, from training: steps took 3.4 % longer while one part in seven was work, 2.0 % with one in ten.
_PAUSE = 9.0


class Pace:
    """The pauses of one thread at a time.

    paused_s  seconds of pauses since `start`
    """

    def __init__(self) -> None:
        self.paused_s = 0.0
        self._hurry = threading.Event()
        self._worked_s = 0.0

    def relax(self) -> None:
        """Nobody waits for what is written next."""
        self._hurry.clear()

    def hurry(self) -> None:
        """Somebody waits: no more pauses, and an end to the present one."""
        self._hurry.set()

    def start(self) -> None:
        """Begin to count; in the thread that writes."""
        self.paused_s = 0.0
        self._worked_s = time.thread_time()

    def pause(self) -> None:
        """Pause after a piece of work; in the thread that writes. Waiting for a slow disk is no work."""
        began = time.monotonic()
        self._hurry.wait(_PAUSE * (time.thread_time() - self._worked_s))
        self._worked_s = time.thread_time()
        self.paused_s += time.monotonic() - began
