"""Standard streams that do not end the process when they fail."""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress
from typing import Any, TextIO, cast


def outlive_streams() -> None:
    """Let this process survive a closed terminal, a broken pipe and a full disk.

    Output that cannot be written is dropped. Use it only where the output is not the result.
    """
    sys.stdout, sys.stderr = lasting(sys.stdout), lasting(sys.stderr)


def lasting(stream: TextIO | None) -> TextIO:
    """Wrap a stream: output that fails is dropped, characters that the encoding lacks are replaced."""
    return stream if isinstance(stream, Lasting) else cast(TextIO, Lasting(stream))


def is_utf_8(encoding: str) -> bool:
    """Whether an encoding is UTF-8, which has every character."""
    return codecs.lookup(encoding).name == "utf-8"


def forgiving(stream: TextIO | None) -> TextIO:
    """Make a stream replace characters that its encoding lacks; for None (closed), return a null stream."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    # Not UTF-8 with surrogateescape, which lacks no character and restores the bytes of file names.
    if isinstance(stream, io.TextIOWrapper) and (stream.errors == "strict" or not is_utf_8(stream.encoding)):
        stream.reconfigure(errors="replace")
    return stream


class Lasting:
    """A stream as `lasting` returns it."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = forgiving(stream)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._lose(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        """Redirect the stream to /dev/null, also its buffered output, which would fail again at the exit."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
