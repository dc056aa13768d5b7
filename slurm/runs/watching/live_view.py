"""A view that fills the terminal and is redrawn until a key or the end of its runs closes it."""

from __future__ import annotations

import os
import signal
import time
from abc import ABC, abstractmethod
from enum import Enum, auto

from rich.console import Console, RenderableType
from rich.live import Live

from slurm.runs.watching.keyboard import Keyboard


class Ending(Enum):
    """The reason why a view has ended."""

    QUIT = auto()
    STOPPED = auto()
    LOG = auto()
    OPENED = auto()


class LiveView(ABC):
    """A view on the whole terminal, read again after each interval and redrawn after each key.

    until_finished  whether the view ends when nothing that it shows is live any more
    """

    def __init__(self, interval_s: float, until_finished: bool) -> None:
        self._interval_s = interval_s
        self._until_finished = until_finished

    @abstractmethod
    def refresh(self) -> bool:
        """Read the shown data again; return whether any of it may be live."""

    @abstractmethod
    def draw(self, width: int, height: int) -> RenderableType:
        """Return the last data, drawn for a terminal of this size."""

    @abstractmethod
    def press(self, key: str) -> Ending | None:
        """Act on a key; return why the view ends, or None."""

    def show(self, console: Console, keyboard: Keyboard) -> Ending:
        """Show the view until a key or the end of its runs closes it; return the reason."""
        while (ending := self._show(console, keyboard)) is Ending.STOPPED:
            # Stop as Ctrl-Z does, with the terminal restored; `fg` continues here.
            os.kill(os.getpid(), signal.SIGSTOP)
        return ending

    def _show(self, console: Console, keyboard: Keyboard) -> Ending:
        # The keyboard is the outer context, so that the terminal is restored before an error is shown.
        with keyboard, Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                if not self.refresh() and self._until_finished:
                    return Ending.QUIT
                if (ending := self._until_next_refresh(keyboard, live)) is not None:
                    return ending

    def _until_next_refresh(self, keyboard: Keyboard, live: Live) -> Ending | None:
        """Handle keys until the next refresh is due; return why the view ends, or None."""
        next_refresh = time.monotonic() + self._interval_s
        while True:
            live.update(self.draw(*live.console.size), refresh=True)
            key = keyboard.wait(next_refresh - time.monotonic())
            if not key:
                return None
            if (ending := self.press(key)) is not None:
                return ending
