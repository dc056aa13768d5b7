"""failure.json: what failed first, where, and what to do."""

from __future__ import annotations

import json
import socket
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.errors import RanksDiverged, StkError, TrainingDiverged
from toolkit.events import note_event
from toolkit.failure.classes import HANG, KILLED, KINDS, NO_PROGRESS, PEER_LOST, Policy, describe
from toolkit.failure.fence import is_fenced
from toolkit.failure.telling import tell_failure
from toolkit.files import create_once, read_json, read_json_lines, write_json
from toolkit.rundir import RunDir
from toolkit.world import World

__all__ = [
    "HANG",
    "KILLED",
    "KINDS",
    "NO_PROGRESS",
    "PEER_LOST",
    "Policy",
    "describe",
    "failure_record",
    "first_failure",
    "forget_failure",
    "host_of",
    "last_heartbeat",
    "record_failure",
    "silent_record",
    "tell_failure",
    "write_first",
]

#: The first rank to name a cause stands, and till then the first to tell a consequence.
_CLAIMS = ("cause", "consequence")


def record_failure(
    run: RunDir,
    world: World,
    phase: str,
    step: int,
    error: BaseException,
    samples: Sequence[int] = (),
    scene: Mapping[str, Any] | None = None,
) -> bool:
    """Write failure.json unless another rank was first; return whether this call did.

    What follows from another rank's death is told apart by whoever comes second. samples are those of
    the micro-batch at work, scene is what this rank found around it (toolkit.scene).
    """
    name, _ = describe(error)
    rank, host = _culprit(run, world, error)
    message = str(error) if isinstance(error, StkError) else f"{type(error).__name__}: {error}"
    trace = "".join(traceback.format_exception(error))
    record = failure_record(
        world.nonce, name, message, rank=rank, host=host, phase=phase, step=step, trace=trace
    )
    if isinstance(error, RanksDiverged) and not error.ranks:
        record["blamed"] = None
    # Of another rank's surroundings this one knows nothing.
    found = scene if scene is not None and rank == world.rank else {}
    return write_first(run, {**record, **found, "samples": list(samples)})


def failure_record(
    nonce: str,
    name: str,
    message: str,
    *,
    rank: int | None,
    host: str,
    phase: str,
    step: int | None,
    trace: str = "",
) -> dict[str, Any]:
    """What failure.json holds. `blamed` is the host that is suspect, if one is."""
    return {
        "time": time.time(),
        "nonce": nonce,
        "rank": rank,
        "host": host,
        "phase": phase,
        "step": step,
        "class": name,
        "blamed": host if KINDS[name].blames_host else None,
        "message": message,
        "advice": KINDS[name].advice,
        "traceback": trace,
    }


def silent_record(run: RunDir, nonce: str, name: str, what: str, rank: int, host: str) -> dict[str, Any]:
    """The record of a rank that could not write one itself: from its last heartbeat."""
    seen = last_heartbeat(run, nonce, rank)
    # Those that lost it know how far it came; its heartbeat is some seconds old.
    others = first_failure(run, nonce) or {}
    steps = [each["step"] for each in (seen, others) if each.get("step") is not None]
    where = f", last seen in {seen['phase']} at step {seen['step']}" if seen else ""
    record = failure_record(
        nonce,
        name,
        what + where,
        rank=rank,
        host=host,
        phase=seen.get("phase", "start"),
        step=max(steps, default=None),
    )
    return {**record, **seen.get("scene", {})}


def last_heartbeat(run: RunDir, nonce: str, rank: int) -> dict[str, Any]:
    """What a rank last said of itself (toolkit.failure.watchdog); empty where it never did."""
    try:
        return read_json(run.heartbeat(nonce, rank)) or {}
    except (OSError, ValueError):
        return {}


def _culprit(run: RunDir, world: World, error: BaseException) -> tuple[int, str]:
    """Rank and host of who is at fault: of unequal weights, or of a loss that is none, all ranks know it."""
    rank = error.rank if isinstance(error, TrainingDiverged) else None
    if isinstance(error, RanksDiverged) and error.ranks:
        rank = error.ranks[0]
    if rank is not None and rank != world.rank and (host := host_of(run, world.nonce, rank)) is not None:
        return rank, host
    return world.rank, socket.gethostname()


def host_of(run: RunDir, nonce: str, rank: int) -> str | None:
    """The host of a rank of a start; None where nobody wrote it down."""
    return next(
        (line["host"] for line in read_json_lines(run.ranks(nonce)) if line.get("rank") == rank), None
    )


def write_first(run: RunDir, record: dict[str, Any]) -> bool:
    """Put a record into failure.json; the first one of a start stands, unless it was only a consequence.

    Of ranks that fail at the same time exactly one wins. A process of a start that another one has
    replaced writes nothing.
    """
    if is_fenced(run, record["nonce"]):
        return False
    facts = ("rank", "host", "phase", "step", "class", "samples", "nonce")
    note_event(run, "failure", **{name: record[name] for name in facts if name in record})
    try:
        return _write_first(run, record)
    except OSError:
        # A full disk; the log and the exit status still tell.
        return False


def _write_first(run: RunDir, record: dict[str, Any]) -> bool:
    cause, consequence = (_claim(run, record["nonce"], what) for what in _CLAIMS)
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    cause.parent.mkdir(parents=True, exist_ok=True)
    if record["class"] != PEER_LOST:
        won = create_once(cause, text)
    else:
        won = not cause.exists() and create_once(consequence, text)
    if won:
        write_json(run.failure, record)
        if record["class"] == PEER_LOST and (known := read_json(cause)) is not None:
            # Claimed since we looked, and perhaps written before us: the cause stands.
            write_json(run.failure, known)
    return won


def _claim(run: RunDir, nonce: str, what: str) -> Path:
    """Where the first rank of a start to name a cause, or a consequence, puts it."""
    return run.ranks(nonce).with_name(f"{nonce}.{what}.json")


def first_failure(run: RunDir, nonce: str) -> dict[str, Any] | None:
    """What failed first in one start; None where nobody could say so."""
    for what in _CLAIMS:
        if (record := read_json(_claim(run, nonce, what))) is not None:
            return dict(record)
    return None


def forget_failure(run: RunDir, nonce: str) -> None:
    """Take away what an earlier start of this name left, for a launcher may use a name again."""
    run.failure.unlink(missing_ok=True)
    for what in _CLAIMS:
        _claim(run, nonce, what).unlink(missing_ok=True)
