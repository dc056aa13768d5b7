"""Reading what files get while they grow, without reading the rest again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from toolkit.files import read_end

#: Bytes of the end of a log.
_END = 16_384


class GrowingLines:
    """The records of a JSON-lines file that another process appends to, or replaces.

    A line that is not whole yet is left for the next look; a damaged one is passed over.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._last = b""
        self.records: list[dict[str, Any]] = []

    def look(self) -> list[dict[str, Any]]:
        """All records by now; only the new ones are read."""
        try:
            with open(self._path, "rb") as stream:
                if not self._continues(stream.fileno()):
                    self._forget()
                stream.seek(self._position)
                self._take(stream.read())
        except FileNotFoundError:
            self._forget()
        except OSError:
            # Not to be read for the moment: what is known still holds.
            pass
        return self.records

    def _continues(self, descriptor: int) -> bool:
        """Whether the file still says, up to where it was read, what it said."""
        return os.pread(descriptor, len(self._last), self._position - len(self._last)) == self._last

    def _forget(self) -> None:
        self._position, self._last = 0, b""
        self.records = []

    def _take(self, raw: bytes) -> None:
        whole, newline, _ = raw.rpartition(b"\n")
        if not newline:
            return
        lines = whole.split(b"\n")
        self._position += len(whole) + 1
        self._last = lines[-1] + newline
        self.records += [record for line in lines if (record := _record(line)) is not None]


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def last_lines(path: Path, count: int) -> list[str]:
    """The last `count` lines of a text file, out of its last 16 KB; none where it cannot be read."""
    raw = read_end(path, _END + 1)
    lines = raw.decode("utf-8", "replace").split("\n")
    if len(raw) > _END:
        # The first one is cut.
        del lines[0]
    return [line for line in lines if line.strip()][-count:]
