"""Waiting for a condition, never for a length of time."""

import time
from collections.abc import Callable

from .errors import ClusterError


def wait_until(
    condition: Callable[[], bool], timeout_s: float, complaint: Callable[[], str], interval_s: float = 0.1
) -> None:
    """Return as soon as `condition` holds; raise ClusterError with `complaint()` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterError(f"gave up after {timeout_s:g} s: {complaint()}")
        time.sleep(interval_s)
