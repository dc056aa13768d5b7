"""Random orders that depend only on their key, not on the library's version or the processor."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt


def stream(*key: str | int) -> np.random.Philox:
    """Start the counter-based stream of random bits that the key names (Salmon et al. 2011)."""
    digest = hashlib.sha256("\n".join(str(part) for part in key).encode()).digest()
    return np.random.Philox(key=int.from_bytes(digest[:16], "little"))


def permutation(bits: np.random.Philox, n: int) -> npt.NDArray[np.int64]:
    """Draw a random order of range(n): [n], by sorting random numbers that carry their position.

    Generator.permutation may change with numpy (NEP 19); the raw stream may not. The position in the
    low bits makes every number unique, so that any sorting algorithm gives the same order.
    """
    mask = np.uint64((1 << max(n - 1, 0).bit_length()) - 1)
    keys = np.atleast_1d(bits.random_raw(n)).astype(np.uint64, copy=False)
    keys &= ~mask
    keys |= np.arange(n, dtype=np.uint64)
    keys.sort()
    keys &= mask
    return keys.view(np.int64)
