"""Which machine wrote a record: by its host name, and by its boot id, which a new name does not change."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path


@cache
def boot() -> str:
    """Identify the machine until it boots again, and the namespace of its process ids.

    Empty if the system reports neither.
    """
    with suppress(OSError):
        kernel = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{kernel} {os.readlink('/proc/self/ns/pid')}"
    return ""


def is_here(host: object, boot_then: object) -> bool:
    """Whether a process that wrote this host name and this boot ran on this machine.

    The name alone is enough, even after a reboot: locks and command lines show that the process is gone.
    """
    return host == socket.gethostname() or (boot() != "" and boot_then == boot())
