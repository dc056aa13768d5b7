"""Two hosts that share a folder: delay until one sees the other's files, locks, and clock difference.

One side (`answer`) holds a lock and replies; the other (`ask`) writes first, then tries the lock. Both list
the folder before each read, as the ranks of a run do, because a network file system would otherwise answer
from its cache.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

from toolkit.files import write_atomic
from toolkit.monitoring.diagnostics.folder import can_lock

_LOCK, _HELLO, _REPLY = "lock", "hello.json", "reply.json"
#: Seconds between two reads: in `ask`, and in `answer`, which may wait long for the other host.
_POLL_S, _POLL_SLOWLY_S = 0.01, 0.05


def answer(folder: Path, over: Event) -> None:
    """Hold the lock and reply to the first writer; return when `over` is set."""
    with suppress(OSError), open(folder / _LOCK, "w", encoding="utf-8") as lock:
        is_held = _is_held(lock.fileno())
        while not over.wait(_POLL_SLOWLY_S):
            if _look(folder, _HELLO) is not None:
                seen = time.time()
                reply = {"seen": seen, "sent": time.time(), "is_held": is_held}
                write_atomic(folder / _REPLY, json.dumps(reply))
                break
        # The other side still tries the lock.
        over.wait()


def _is_held(descriptor: int) -> bool:
    try:
        return can_lock(descriptor)
    except OSError:
        # This file system has no such locks; the probe of the folder shows that.
        return False


def ask(folder: Path, timeout_s: float) -> dict[str, Any]:
    """Facts as JSON: whether the other host's lock holds, seconds of the round trip, and by how much its
    clock is ahead of this one's (as in NTP: accurate to half of the round trip).

    Values are None if they are unknown, because no other host replied in time.
    """
    facts: dict[str, Any] = {"sees_folder": folder.is_dir(), "lock_holds": None}
    facts |= {"there_and_back_s": None, "clock_ahead_s": None}
    if not facts["sees_folder"]:
        return facts
    began, sent = time.monotonic(), time.time()
    write_atomic(folder / _HELLO, json.dumps({"sent": sent}))
    while time.monotonic() - began < timeout_s:
        if (reply := _look(folder, _REPLY)) is not None:
            clock = _clock(reply, sent, time.time(), time.monotonic() - began)
            # The process that has replied holds the lock.
            return {**facts, **clock, "lock_holds": _lock_holds(folder) if reply["is_held"] else None}
        time.sleep(_POLL_S)
    return facts


def _clock(reply: dict[str, float], sent: float, got: float, taken_s: float) -> dict[str, float]:
    ahead_s = ((reply["seen"] - sent) + (reply["sent"] - got)) / 2
    return {"there_and_back_s": round(taken_s, 3), "clock_ahead_s": round(ahead_s, 3)}


def _lock_holds(folder: Path) -> bool | None:
    try:
        with open(folder / _LOCK, "r+", encoding="utf-8") as lock:
            return not can_lock(lock.fileno())
    except OSError:
        return None


def _look(folder: Path, name: str) -> dict[str, float] | None:
    with suppress(OSError, ValueError):
        os.listdir(folder)
        found: dict[str, float] = json.loads((folder / name).read_text())
        return found
    return None
