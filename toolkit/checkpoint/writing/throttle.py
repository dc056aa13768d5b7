"""Throttling of a background writer: pauses in proportion to its work, unless training waits for it."""

from __future__ import annotations

import threading
import time

#: Length of a pause, in multiples of the work before it. The writer takes a core and memory bandwidth from
#: training: steps took 3.4 % longer while it worked a seventh of the time, 2.0 % with a tenth.
_PAUSE = 9.0


class Throttle:
    """Pauses of the writing thread; one thread at a time.

    paused_s  seconds of pauses since `start`
    """

    def __init__(self) -> None:
        self.paused_s = 0.0
        self._disabled = threading.Event()
        self._worked_s = 0.0

    def enable(self) -> None:
        """Pause from now on: training does not wait for the writer."""
        self._disabled.clear()

    def disable(self) -> None:
        """Stop pausing, and end the current pause: training waits for the writer."""
        self._disabled.set()

    def start(self) -> None:
        """Reset the counters; called in the writing thread."""
        self.paused_s = 0.0
        self._worked_s = time.thread_time()

    def pause(self) -> None:
        """Pause after a piece of work; called in the writing thread. Waiting for the disk does not count."""
        began = time.monotonic()
        self._disabled.wait(_PAUSE * (time.thread_time() - self._worked_s))
        self._worked_s = time.thread_time()
        self.paused_s += time.monotonic() - began
