"""How long tests wait for what has to come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

#: Seconds; fewer than pytest allows a test. Nothing is measured with it: a busy machine may be slow, but a
#: hang has to end.
PATIENCE_S = 600.0


def until(condition: Callable[[], Any]) -> Any:
    """What a condition gives once it gives something."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < deadline, "this took too long"
        time.sleep(0.01)
    return value
