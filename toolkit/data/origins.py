"""Where samples come from: file, line, label and text, for people who ask about a certain one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from toolkit.data.samples import Samples
from toolkit.errors import DataError

#: Well under the number of values that every SQLite takes in one statement.
_IDS_PER_QUERY = 500
_QUERY = """
SELECT sample_id, sources.file, texts.line, fragments.label, fragments.text
FROM fragments JOIN texts ON fragments.text_id = texts.id JOIN sources ON texts.source = sources.id
WHERE sample_id IN ({places})
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """One sample: its index in its split, and what is known of it; empty and 0 where nothing is."""

    sample: int
    file: str = ""
    line: int = 0
    label: str = ""
    text: str = ""

    def __str__(self) -> str:
        """The sample in a line."""
        place = f" ({self.file}:{self.line})" if self.file else ""
        label = f" [{self.label}]" if self.label else ""
        return f"sample {self.sample}{place}{label} {' '.join(self.text.split())}".rstrip()


@runtime_checkable
class Traced(Protocol):
    """Samples that know themselves where they come from."""

    def origins(self, indices: np.ndarray) -> dict[int, Origin]:
        """What is known of these samples, by their index in the split."""


def origins(samples: object, indices: np.ndarray) -> list[Origin]:
    """Where these samples of a split come from; only of prepared data more than the index is known.

    Never raises for damaged data: whoever asks is explaining something else.
    """
    known: dict[int, Origin] = {}
    if isinstance(samples, Samples | Traced):
        try:
            known = _look_up(samples, indices) if isinstance(samples, Samples) else samples.origins(indices)
        except (sqlite3.Error, DataError, OSError):
            known = {}
    return [known.get(int(index), Origin(sample=int(index))) for index in indices]


def _look_up(samples: Samples, indices: np.ndarray) -> dict[int, Origin]:
    numbers = {int(samples.ids[index]): int(index) for index in indices}
    wanted = list(numbers)
    found: dict[int, Origin] = {}
    # Immutable: no lock is taken, so that many ranks may read over a network file system.
    uri = f"{samples.database.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        for first in range(0, len(wanted), _IDS_PER_QUERY):
            some = wanted[first : first + _IDS_PER_QUERY]
            query = _QUERY.format(places=", ".join("?" * len(some)))
            for key, file, line, label, text in connection.execute(query, some):
                index = numbers[key]
                found[index] = Origin(sample=index, file=file, line=line, label=label, text=text)
    return found
