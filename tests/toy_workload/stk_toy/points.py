"""Prepared points: an array for each split."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stk_toy.sections import PointsData
from toolkit.data.prepared.arrays import map_array, write_array
from toolkit.data.prepared.columns import Column
from toolkit.data.prepared.folder import PreparedFolder
from toolkit.data.prepared.manifest import write_manifest
from toolkit.errors import DataError
from toolkit.workload import Progress


@dataclass(frozen=True, slots=True)
class Split:
    x: np.ndarray
    y: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        return np.ones(len(self.x), dtype=np.int32)

    def __len__(self) -> int:
        return len(self.x)


def points_of(split: str) -> Column:
    """The points of a split, [n, 2]."""
    return Column(f"{split}.bin", "<f4", 2)


class Points(PreparedFolder[Split]):
    """An opened set."""

    VERSION = 1
    COLUMNS = tuple(map(points_of, ("train", "validation", "test")))

    def _samples(self, split: str) -> Split:
        return Split(*map_array(self.path, points_of(split)).T)


def prepare(data: PointsData, progress: Progress) -> Points:
    path, fingerprint = data.prepared_place(progress)

    def fill(folder: Path) -> None:
        points = _read(Path(data.path))
        few = max(1, round(len(points) * data.validation))
        splits = {"train": points[2 * few :], "validation": points[:few], "test": points[few : 2 * few]}
        for name, split in splits.items():
            write_array(folder, points_of(name), split)
        counts = {name: len(split) for name, split in splits.items()}
        write_manifest(folder, {"version": Points.VERSION, "fingerprint": fingerprint, "splits": counts})

    return Points.open_or_build(path, fingerprint, fill)


def _read(path: Path) -> np.ndarray:
    try:
        return np.loadtxt(path, dtype=np.float32, ndmin=2)
    except ValueError as error:
        raise DataError(f"{path} is not a table of two numbers per line: {error}") from error
