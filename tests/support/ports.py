"""Ports for servers that need a fixed port."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

#: Linux takes the ports of outgoing connections from a higher range (ip_local_port_range). Another process
#: could take one of those before the test listens on it.
_PORTS = range(15_000, 32_000)


def free_port() -> int:
    """Return a free TCP port."""
    # Not the seeded numbers: two workers of pytest would ask for the same ports.
    for port in random.SystemRandom().sample(_PORTS, k=100):
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("", port))
            return port
    raise AssertionError(f"100 ports of {_PORTS} are in use")
