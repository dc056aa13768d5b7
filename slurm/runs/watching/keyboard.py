"""Wait for single keys of a terminal and for the signals of a view together."""

from __future__ import annotations

import os
import select
import signal
import termios
import tty
from contextlib import suppress
from types import TracebackType
from typing import Any

#: Signals that are awaited besides keys: a new size of the window, and Ctrl-Z.
_SIGNALS = (signal.SIGWINCH, signal.SIGTSTP)
#: Signals that end the view as Ctrl-C does.
_ENDS = (signal.SIGTERM, signal.SIGHUP)

_ESCAPE = b"\x1b"
_NAMES = {b"\r": "enter", b"\n": "enter"}
#: Keys that send several characters, by their last character. They begin with an escape and one of _STARTS.
_SEQUENCES = {b"A": "up", b"B": "down"}
_STARTS = (b"[", b"O")
#: Characters of a sequence before the last one.
_MIDDLES = frozenset(b"0123456789:;<=>?[")
#: Seconds to wait for the next character of one key: over a slow connection they may arrive separately.
_SEQUENCE_S = 0.05


class Keyboard:
    """A context manager that reads keys without waiting for a line end, and without showing them.

    On exit, also by an error, it restores the terminal and the signals. It may be entered again.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        #: A character that was read and belongs to the next key.
        self._unread = b""

    def __enter__(self) -> Keyboard:
        self._mode = termios.tcgetattr(self._descriptor)
        self._woken, self._wake = os.pipe()
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)
        self._was_awake = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self._handlers: dict[int, Any] = {each: signal.signal(each, _note) for each in _SIGNALS}
        self._handlers |= {each: signal.signal(each, signal.default_int_handler) for each in _ENDS}
        # TCSANOW: the default of setcbreak would drop keys that were pressed before.
        tty.setcbreak(self._descriptor, termios.TCSANOW)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # termios.error: the terminal no longer exists.
        with suppress(termios.error):
            termios.tcsetattr(self._descriptor, termios.TCSANOW, self._mode)
        for each, handler in self._handlers.items():
            signal.signal(each, handler)
        signal.set_wakeup_fd(self._was_awake)
        os.close(self._woken)
        os.close(self._wake)

    def wait(self, timeout_s: float) -> str:
        """Wait for a key and return it; `resized` or `stopped` for a signal; empty after the timeout.

        A key is a letter in lower case, or `up`, `down`, `enter` or `escape`; any other that sends several
        characters is `unknown`. Raises EOFError if the terminal no longer exists.
        """
        if not self._unread:
            ready, _, _ = select.select([self._descriptor, self._woken], [], [], max(0.0, timeout_s))
            if self._woken in ready:
                return "stopped" if signal.SIGTSTP in os.read(self._woken, 4096) else "resized"
            if not ready:
                return ""
        key = self._read()
        if key == _ESCAPE:
            return self._escape()
        return _NAMES.get(key) or key.decode("ascii", "replace").lower()

    def _escape(self) -> str:
        """Return the key of an escape character: Esc itself, or a key that sends several characters."""
        start = self._read_at_once()
        if start not in _STARTS:
            self._unread = start
            return "escape"
        last = self._read_at_once()
        while last and last[0] in _MIDDLES:
            last = self._read_at_once()
        return _SEQUENCES.get(last, "unknown")

    def _read_at_once(self) -> bytes:
        """Return the next character of the same key; empty if none follows in time."""
        ready, _, _ = select.select([self._descriptor], [], [], _SEQUENCE_S)
        return self._read() if ready else b""

    def _read(self) -> bytes:
        character, self._unread = self._unread, b""
        if character:
            return character
        with suppress(OSError):
            character = os.read(self._descriptor, 1)
        if not character:
            raise EOFError
        return character


def _note(*_: object) -> None:
    """Do nothing: the wakeup pipe already has the number of the signal."""
