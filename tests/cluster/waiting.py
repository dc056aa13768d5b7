"""Waiting for a condition, never for a length of time."""

import time
from collections.abc import Callable

from tests.support.patience import PATIENCE_S

from .errors import ClusterError


def wait_until(condition: Callable[[], bool], complaint: Callable[[], str]) -> None:
    """Return as soon as `condition` holds; raise ClusterError with `complaint()` after PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterError(f"gave up after {PATIENCE_S:g} s: {complaint()}")
        # Slurm's programs and the files of other hosts announce no change: they are asked again.
        time.sleep(0.1)
