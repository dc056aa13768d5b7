"""Standard output of a command: unencodable characters are replaced, and a failed write gives one line."""

from __future__ import annotations

from typing import TextIO

from toolkit.errors import UserError
from toolkit.system.output.lasting_streams import Lasting


class OutputLost(UserError):
    """Standard output cannot be written."""


class ReaderLeft(Exception):
    """The reader of a pipe, such as `head`, has closed it.

    Not an OSError, which libraries would treat as their own failure.
    """


class CommandOutput(Lasting):
    """Standard output that records whether writing failed.

    keeps_going   whether a failed write is only remembered, as `failure`, because the command's work matters
                  more than its output. If not, it raises OutputLost, or ReaderLeft for a closed pipe.

    Characters that the encoding lacks are replaced.
    """

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__(stream)
        self.keeps_going = False
        self.failure: OutputLost | None = None

    def _lose(self, error: OSError) -> None:
        super()._lose(error)
        if isinstance(error, BrokenPipeError):
            if not self.keeps_going:
                raise ReaderLeft from None
            return
        why = error.strerror or str(error)
        self.failure = OutputLost(f"standard output cannot be written: {why}. The answer is incomplete")
        if not self.keeps_going:
            raise self.failure from None
