"""Signal handlers that a test sets."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def handlers() -> Iterator[None]:
    """The handlers of this process, put back afterwards."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
    before = {number: signal.getsignal(number) for number in numbers}
    # Also where the tests run under nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
