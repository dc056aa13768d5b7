"""Standard output of a command: unencodable characters are replaced, and a failed write gives one line."""

from __future__ import annotations

from typing import Any, TextIO

from toolkit.errors import UserError
from toolkit.system.output.lasting_streams import forgiving, write_to_nowhere


class OutputLost(UserError):
    """Standard output cannot be written."""


class ReaderLeft(Exception):
    """The reader of a pipe, such as `head`, has closed it.

    Not an OSError, which libraries would treat as their own failure.
    """


class CommandOutput:
    """Standard output that records whether writing failed.

    keeps_going   whether a failed write is only remembered, as `failure`, because the command's work matters
                  more than its output. If not, it raises OutputLost, or ReaderLeft for a closed pipe.

    Characters that the encoding lacks are replaced.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = forgiving(stream)
        self.keeps_going = False
        self.failure: OutputLost | None = None

    def write(self, text: str) -> int:
        """Write a text as the stream does."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._lose(error)
            return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        try:
            self._stream.flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        write_to_nowhere(self._stream)
        if isinstance(error, BrokenPipeError):
            if not self.keeps_going:
                raise ReaderLeft from None
            return
        why = error.strerror or str(error)
        self.failure = OutputLost(f"standard output cannot be written: {why}. The answer is incomplete")
        if not self.keeps_going:
            raise self.failure from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
