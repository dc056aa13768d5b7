"""The rows of the sources, which are read twice: first for what is wrong with them, then for their texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from toolkit.config.kinds import TextTable
from toolkit.data.sources import Source
from toolkit.data.table import Row, read_rows

#: Files of so many bytes in all stay in memory between the two readings, in some three bytes for each.
_KEPT_BYTES = 1 << 25


class Rows:
    """Reads the rows of sources; those of small files are kept for the second time."""

    def __init__(self, data: TextTable, sources: Sequence[Source]) -> None:
        self._data = data
        self._keeps = sum(source.state[0] for source in sources) <= _KEPT_BYTES
        self._kept: dict[Path, list[Row]] = {}

    def of(self, source: Source) -> Iterator[Row]:
        """Yield the rows of a source. Raises DataError, as read_rows does."""
        if (kept := self._kept.pop(source.path, None)) is not None:
            return iter(kept)
        rows = read_rows(source.path, self._data)
        return self._keeping(source.path, rows) if self._keeps else rows

    def _keeping(self, path: Path, rows: Iterator[Row]) -> Iterator[Row]:
        kept = []
        for row in rows:
            kept.append(row)
            yield row
        # Not before the end: what was read in part is read again.
        self._kept[path] = kept
