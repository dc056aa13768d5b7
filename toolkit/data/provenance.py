"""Origins of samples: file, line, label and text, for people who ask about one."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from toolkit.errors import DataError


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
    """Samples that know where they come from."""

    def origins(self, indices: np.ndarray) -> dict[int, Origin]:
        """Return the known origins of these samples, by their index in the split."""


def origins(samples: object, indices: np.ndarray) -> list[Origin]:
    """Return where these samples of a split come from; without prepared data only the index is known.

    Never raises for damaged data: the caller is explaining another error.
    """
    known: dict[int, Origin] = {}
    if isinstance(samples, Traced):
        try:
            known = samples.origins(indices)
        # A row that is gone, or lacks a value, is a TypeError or a ValueError where it is read.
        except (sqlite3.Error, DataError, OSError, TypeError, ValueError):
            known = {}
    return [known.get(int(index), Origin(sample=int(index))) for index in indices]
