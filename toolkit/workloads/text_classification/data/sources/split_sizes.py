"""The sizes of the splits of one table. Imports nothing slow, because checks before submission use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from toolkit.errors import DataError


def split_sizes(n: int, shares: Sequence[float]) -> list[int]:
    """Sizes of the splits: n times the share, rounded by largest remainder, so that they sum to n.

    shares  not negative, and not all zero; they are divided by their sum

    If remainders are equal, the first split is rounded up. A share of 0 gets no sample.
    """
    total = sum(shares)
    exact = [n * share / total for share in shares]
    sizes = [int(value) for value in exact]
    by_remainder = sorted(range(len(shares)), key=lambda split: sizes[split] - exact[split])
    for split in by_remainder[: n - sum(sizes)]:
        sizes[split] += 1
    return sizes


def check_sizes(path: Path, n: int, shares: Mapping[str, float]) -> None:
    """Raise DataError if a split with a share gets none of n samples."""
    for (name, share), size in zip(shares.items(), split_sizes(n, list(shares.values())), strict=True):
        if share > 0 and not size:
            # A run needs the other two splits.
            key = f"data.splits.{name}"
            cure = f"set {key} to 0" if name == "test" else f"raise {key}"
            raise DataError(
                f"{path} has too few rows to learn from, {n}, for the splits {dict(shares)}: none is left "
                f"for {name!r}. Use more rows, or {cure}"
            )
