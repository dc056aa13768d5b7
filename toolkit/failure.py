"""failure.json: what failed first, where, and what to do."""

from __future__ import annotations

import json
import socket
import time
import traceback
from collections.abc import Callable
from typing import Any

from toolkit.errors import CheckpointError, RendezvousError, StkError, TrainingDiverged, UserError
from toolkit.events import note_event
from toolkit.files import create_once, read_json, write_json
from toolkit.rundir import RunDir
from toolkit.world import World

_PEER_LOST = ("Connection closed by peer", "Connection reset by peer", "connection was closed")


def _is(*kinds: type[BaseException]) -> Callable[[BaseException], bool]:
    return lambda error: isinstance(error, kinds)


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def _peer_lost(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _PEER_LOST)


#: (class, test, advice), the first that fits.
_CLASSES: tuple[tuple[str, Callable[[BaseException], bool], str], ...] = (
    ("input", _is(UserError), "Correct what the message names and start the run again."),
    ("diverged", _is(TrainingDiverged), "Change the experiment: it would diverge at the same step again."),
    ("rendezvous", _is(RendezvousError), "Check the network between the hosts, then resume the run."),
    ("checkpoint", _is(CheckpointError), "Check space and rights of the run folder, then resume the run."),
    (
        "out_of_memory",
        _out_of_memory,
        "Ask for more memory, or raise train.accumulation, which needs less (that makes another run).",
    ),
    (
        "peer_lost",
        _peer_lost,
        "Another rank died without a word; its log's last lines may tell. Resume the run.",
    ),
    ("import", _is(ImportError), "Install what is missing where the job runs, then resume the run."),
    ("io", _is(OSError), "Check the file system that the message names, then resume the run."),
    ("exception", _is(BaseException), "The traceback shows the line at fault."),
)


def describe(error: BaseException) -> tuple[str, str]:
    """The class of a failure and what to do about it."""
    return next((name, advice) for name, fits, advice in _CLASSES if fits(error))


def record_failure(run: RunDir, world: World, phase: str, step: int, error: BaseException) -> bool:
    """Write failure.json unless another rank was first; return whether this call did.

    What follows from another rank's death is told apart by whoever comes second.
    """
    name, advice = describe(error)
    message = str(error) if isinstance(error, StkError) else f"{type(error).__name__}: {error}"
    record = {
        "time": time.time(),
        "nonce": world.nonce,
        "rank": world.rank,
        "host": socket.gethostname(),
        "phase": phase,
        "step": step,
        "class": name,
        "message": message,
        "advice": advice,
        "traceback": "".join(traceback.format_exception(error)),
    }
    return write_first(run, record)


def write_first(run: RunDir, record: dict[str, Any]) -> bool:
    """Put a record into failure.json; the first one of a start stands, unless it was only a consequence."""
    note_event(run, "failure", **{name: record[name] for name in ("rank", "host", "phase", "step", "class")})
    if create_once(run.failure, json.dumps(record, indent=2, ensure_ascii=False) + "\n"):
        return True
    present = read_json(run.failure) or {}
    is_stale = present.get("nonce") != record["nonce"]
    is_consequence = present.get("class") == "peer_lost" and record["class"] != "peer_lost"
    if is_stale or is_consequence:
        write_json(run.failure, record)
        return True
    return False


def tell_failure(failure: dict[str, Any]) -> str:
    """What failure.json says, in three lines."""
    place = f"rank {failure['rank']} on {failure['host']}, in {failure['phase']}, at step {failure['step']}"
    return f"error: {failure['message']}\n  where   {place}\n  what to do   {failure['advice']}"
