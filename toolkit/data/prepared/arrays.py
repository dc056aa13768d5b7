"""Writing the flat arrays of a prepared set, and mapping them into memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolkit.data.prepared.columns import Column
from toolkit.data.prepared.manifest import PREPARE_AGAIN
from toolkit.data.ragged import Array, Lists
from toolkit.errors import DataError


def write_array(folder: Path, column: Column, values: npt.ArrayLike) -> None:
    """Write a column of a folder. Raises OSError; DataError for rows of another width than the column's."""
    if column.width and np.shape(values)[1:] != (column.width,):
        shape = ", ".join(map(str, np.shape(values)))
        raise DataError(f"{column.file}: found the shape [{shape}], expected [n, {column.width}]")
    # Not tofile: its errors lose the reason, such as a full disk.
    with open(folder / column.file, "wb") as stream:
        stream.write(np.ascontiguousarray(values, dtype=column.dtype).data)


def map_array(folder: Path, column: Column) -> Array:
    """Map a column of a folder read-only, as a plain array: slices of np.memmap itself are 60 times slower.

    Raises DataError.
    """
    path = folder / column.file
    try:
        empty = not path.stat().st_size
        mapped = () if empty else np.memmap(path, dtype=column.dtype, mode="r")
        values = np.asarray(mapped, dtype=column.dtype)
        return values.reshape(-1, column.width) if column.width else values
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be mapped into memory ({error}); {PREPARE_AGAIN}") from error


def map_lists(folder: Path, values: Column, offsets: Column) -> Lists:
    """Map lists of numbers: their values, and the offset of each list. Raises DataError."""
    return Lists(map_array(folder, values), map_array(folder, offsets))
