"""The flat arrays of a prepared set: their files and types. Imports nothing slow."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Column:
    """One flat array of a prepared set.

    file   name of its file
    dtype  type of its values; empty if it differs between sets (see `of`)
    width  values in a row; 0 for an array of one dimension
    """

    file: str
    dtype: str = ""
    width: int = 0

    def of(self, dtype: str) -> Column:
        """Return the column of a set whose values have this type."""
        return replace(self, dtype=dtype)


def split_ids(split: str) -> Column:
    """The ids of a split's samples, ascending."""
    return Column(f"split_{split}.bin", "<i8")


def token_dtype(vocabulary_size: int) -> str:
    """Return the type of token ids: two bytes if that is enough."""
    return "<u2" if vocabulary_size <= 1 << 16 else "<u4"
