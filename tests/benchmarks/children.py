"""What the tests call in a fresh interpreter."""

from __future__ import annotations

import os
import sys


def state() -> dict[str, object]:
    return {"pytest": "pytest" in sys.modules, "threads": os.environ["OMP_NUM_THREADS"]}


def fail() -> None:
    raise ValueError("nothing to see")
