"""Find the same texts in different splits, by comparing hashes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.workloads.text_classification.data.sources.formats.table import Row
from toolkit.workloads.text_classification.data.sources.splits import SplitNumbers

#: At most this many texts are compared, the first ones. Each needs twelve bytes; sorting takes seconds.
_MOST = 20_000_000

Numbers = npt.NDArray[np.int64]


class TextHashes:
    """The hashes and lines of texts, in the order of reading.

    files   one for each source
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files
        # Python's own hash is fast and has 64 bits. Its values are valid in this process only.
        self._hashes = array("q")
        self._lines = array("i")

    def note(self, row: Row) -> None:
        if len(self._hashes) < _MOST:
            self._hashes.append(hash(row.text))
            self._lines.append(row.line)

    def shared(
        self, names: Sequence[str], splits: SplitNumbers, files: npt.NDArray[np.int8], kept: Numbers
    ) -> list[dict[str, Any]]:
        """Return the texts that are in two splits, for each pair of splits with shared texts.

        splits, files, kept   [n] for each remaining text: split, source, position in the order of reading
        """
        kept = kept[kept < len(self._hashes)]
        hashes = np.frombuffer(self._hashes, np.int64)[kept]
        lines = np.frombuffer(self._lines, np.int32)[kept]
        splits, files = splits[: len(kept)], files[: len(kept)]
        found = []
        for one, other in combinations(range(len(names)), 2):
            at_one, at_other = np.flatnonzero(splits == one), np.flatnonzero(splits == other)
            _, in_one, in_other = np.intersect1d(hashes[at_one], hashes[at_other], return_indices=True)
            common = sorted(zip(at_one[in_one].tolist(), at_other[in_other].tolist(), strict=True))
            if common:
                first, second = (f"{self._files[files[place]]}:{lines[place]}" for place in common[0])
                pair = (names[one], names[other])
                found.append({"splits": pair, "texts": len(common), "places": (first, second)})
        return found
