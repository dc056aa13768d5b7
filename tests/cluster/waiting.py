"""Waiting for a condition, never for a length of time."""

import time
from collections.abc import Callable

from .errors import ClusterError

#: For how long whatever has to come is waited for. Nothing is measured with it: a busy machine may be slow,
#: a hang has to end.
PATIENCE_S = 300.0


def wait_until(condition: Callable[[], bool], complaint: Callable[[], str], interval_s: float = 0.1) -> None:
    """Return as soon as `condition` holds; raise ClusterError with `complaint()` after PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterError(f"gave up after {PATIENCE_S:g} s: {complaint()}")
        time.sleep(interval_s)
