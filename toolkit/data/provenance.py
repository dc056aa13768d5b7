"""Origins of samples: file, line, label and text, for messages and views."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """One sample: its index in its split, and its origin; unknown fields are empty or 0."""

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


def origins(samples: Any, indices: np.ndarray) -> list[Origin]:
    """Return the origins of these samples of a split; without prepared data, only the index is known.

    samples   with prepared data, their method `origins(indices)` returns the known origins by index
    Never raises for damaged data: the caller explains another error.
    """
    known: dict[int, Origin] = {}
    # Reading a missing row, or one without a value, raises TypeError or ValueError.
    with suppress(sqlite3.Error, DataError, OSError, TypeError, ValueError):
        # Of the class: an own `__getattr__` may raise anything.
        if hasattr(type(samples), "origins"):
            known = samples.origins(indices)
    return [known.get(int(index), Origin(sample=int(index))) for index in indices]
