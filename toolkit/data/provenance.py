"""Origins of samples: file, line, label and text, for messages and views."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

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


@runtime_checkable
class Traced(Protocol):
    """Samples that know their origins."""

    def origins(self, indices: np.ndarray) -> dict[int, Origin]:
        """Return the known origins of these samples, by their index in the split."""


def origins(samples: object, indices: np.ndarray) -> list[Origin]:
    """Return the origins of these samples of a split; without prepared data, only the index is known.

    Never raises for damaged data: the caller explains another error.
    """
    known: dict[int, Origin] = {}
    if isinstance(samples, Traced):
        try:
            known = samples.origins(indices)
        # Reading a missing row, or one without a value, raises TypeError or ValueError.
        except (sqlite3.Error, DataError, OSError, TypeError, ValueError):
            known = {}
    return [known.get(int(index), Origin(sample=int(index))) for index in indices]
