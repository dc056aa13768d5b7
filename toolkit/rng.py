"""Randomness as a pure function of (seed, step, micro-batch).

Nothing random is ever saved: a resumed run, on any number of processes, seeds each micro-batch anew
and draws the same numbers.
"""

from __future__ import annotations

import hashlib
import random
import struct

import numpy as np
import torch


def derive(*parts: int) -> int:
    """A well-mixed 63-bit seed from integers; neighbouring arguments give unrelated seeds."""
    packed = struct.pack(f"<{len(parts)}q", *parts)
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little") >> 1


def seed_everything(*parts: int) -> None:
    """Seed Python, numpy and torch (all devices) from integers, for example (seed, step, micro-batch)."""
    value = derive(*parts)
    random.seed(value)
    np.random.seed(value & 0xFFFFFFFF)
    torch.manual_seed(value)
