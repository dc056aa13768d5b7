"""A rank that cannot take part notifies its attempt's other ranks, so that they do not wait for a timeout."""

from __future__ import annotations

import socket
from contextlib import suppress

from toolkit.files import read_object, write_json
from toolkit.run.run_dir import RunDir


def write_refusal(run: RunDir, nonce: str, why: str) -> None:
    """Write why a process of an attempt cannot take part. Do nothing if the folder cannot be written."""
    path = run.refusal(nonce)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {"host": socket.gethostname(), "why": why})


def read_refusal(run: RunDir, nonce: str) -> str | None:
    """Why a process of an attempt cannot take part, with its host; None if none has reported that."""
    if not (found := read_object(run.refusal(nonce))):
        return None
    return f"a process of this attempt on {found.get('host')} cannot take part: {found.get('why')}"


def forget_refusal(run: RunDir, nonce: str) -> None:
    """Remove the refusal of an earlier attempt with the same nonce."""
    with suppress(OSError):
        run.refusal(nonce).unlink()
