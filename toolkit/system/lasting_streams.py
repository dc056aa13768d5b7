"""Standard streams whose failure does not end the process."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, TextIO, cast


def outlive_streams() -> None:
    """Let this process survive a closed terminal, a broken pipe and a full disk.

    Output that cannot be written is dropped. Use it only where the output is not the result.
    """
    sys.stdout, sys.stderr = lasting(sys.stdout), lasting(sys.stderr)


def lasting(stream: TextIO) -> TextIO:
    """Wrap a stream: it drops output that its file refuses."""
    return stream if isinstance(stream, _Lasting) else cast(TextIO, _Lasting(stream))


class _Lasting:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            self._let_go()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            self._let_go()

    def _let_go(self) -> None:
        """Write to nowhere instead, also what is still in the buffer: it would fail again at the exit."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
