"""failure.json: what failed first, where, and what to do."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.config.secrets import concealed
from toolkit.errors import RanksDiverged, StkError, TrainingDiverged
from toolkit.files import create_once, read_json, read_json_lines, read_object, write_json
from toolkit.run.disk_reserve import give_up_reserve
from toolkit.run.events import note_event
from toolkit.run.failure.classes import FAILURE_CLASSES, KILLED, PEER_LOST, advice_on, class_of
from toolkit.run.failure.log_end import last_words
from toolkit.run.failure.own_frames import own_trace
from toolkit.run.fence import is_fenced
from toolkit.run.phases import Phase
from toolkit.run.records.from_json import whole
from toolkit.run.records.ranks import hosts_of
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

#: The first record of a cause counts; until one exists, the first record of a consequence.
_CLAIMS = ("cause", "consequence")


def record_failure(
    run: RunDir,
    world: World,
    phase: str,
    step: int,
    error: BaseException,
    samples: Sequence[int] = (),
    failure_context: Mapping[str, Any] | None = None,
) -> bool:
    """Write failure.json unless another rank was first; return whether this call wrote it.

    A cause replaces a consequence of another rank's death.
    samples          indices of the current micro-batch
    failure_context  GPU, batch and memory of this rank
    """
    name = class_of(error)
    rank, host = _culprit(run, world, error)
    message = str(error) if isinstance(error, StkError) else f"{type(error).__name__}: {error}"
    trace = own_trace(error)
    record = failure_record(
        world.nonce, name, message, rank=rank, host=host, phase=phase, step=step, trace=trace
    )
    if isinstance(error, RanksDiverged) and not error.ranks:
        record["blamed"] = None
    # The context describes this rank; another rank's context is unknown.
    found = failure_context if failure_context is not None and rank == world.rank else {}
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
    """The contents of failure.json. `blamed` is the suspect host, if any."""
    return {
        "time": time.time(),
        "nonce": nonce,
        "rank": rank,
        "host": host,
        "phase": phase,
        "step": step,
        "class": name,
        "blamed": host if FAILURE_CLASSES[name].blames_host else None,
        "message": concealed(message),
        "advice": advice_on(name),
        "traceback": concealed(trace),
    }


def silent_record(
    run: RunDir, nonce: str, name: str, what: str, rank: int, host: str, code: int | None = None
) -> dict[str, Any]:
    """The record of a rank that could not write one: from its last heartbeat and the end of its log.

    code   its exit status, if known
    """
    if name == KILLED and (words := last_words(run.log(nonce, rank), code)) is not None:
        name, what = words.kind, f"{what}: {words.line}" if words.line else what
    seen = last_heartbeat(run, nonce, rank)
    # The ranks that lost it know its step; its heartbeat is some seconds old.
    others = first_failure(run, nonce) or {}
    lines = [line for line in read_json_lines(run.attempts) if line.get("nonce") == nonce]
    shown = last_progress(run, lines[-1].get("attempt", 0) if lines else 0)
    known = max(whole(each) or 0 for each in (shown.get("step"), *(line.get("first_step") for line in lines)))
    if seen and seen["step"] < known:
        # The heartbeat, with its batch, is from before the checkpoint was loaded, or the newest steps.
        seen |= {"phase": Phase.PROGRAM, "step": known}
        if isinstance(scene := seen.get("scene"), dict):
            scene.pop("batch", None)
    steps = [each["step"] for each in (seen, others) if each.get("step") is not None]
    where = f", last seen in {seen['phase']} at step {seen['step']}" if seen else ""
    record = failure_record(
        nonce,
        name,
        what + where,
        rank=rank,
        host=host,
        phase=seen.get("phase", Phase.START),
        step=max(steps, default=None),
    )
    return {**record, **seen.get("scene", {})}


def last_progress(run: RunDir, attempt: Any) -> dict[str, Any]:
    """The contents of progress.json if this attempt wrote it; else empty. It is newer than a heartbeat."""
    shown = read_object(run.progress)
    return shown if shown.get("attempt") == attempt else {}


def last_heartbeat(run: RunDir, nonce: str, rank: int) -> dict[str, Any]:
    """The last heartbeat of a rank (toolkit.reliability.watchdog); empty without one."""
    return read_object(run.heartbeat(nonce, rank))


def _culprit(run: RunDir, world: World, error: BaseException) -> tuple[int, str]:
    """Rank and host at fault: this rank, unless the error names one (unequal weights, loss not finite)."""
    rank = error.rank if isinstance(error, TrainingDiverged) else None
    if isinstance(error, RanksDiverged) and error.ranks:
        rank = error.ranks[0]
    if rank is not None and rank != world.rank and (host := hosts_of(run, world.nonce).get(rank)) is not None:
        return rank, host
    return world.rank, socket.gethostname()


def write_first(run: RunDir, record: dict[str, Any]) -> bool:
    """Write a record to failure.json; the first one of an attempt stays, unless it was a consequence.

    If ranks fail at the same time, exactly one wins. A process of a replaced attempt writes nothing.
    """
    if is_fenced(run, record["nonce"]):
        return False
    facts = ("rank", "host", "phase", "step", "class", "samples", "nonce")
    note_event(run, "failure", **{name: record[name] for name in facts if name in record})
    for _ in range(2):
        try:
            return _write_first(run, record)
        except OSError:
            # A full disk. If this room is not enough, the log and the exit status remain.
            give_up_reserve(run)
    return False


def _write_first(run: RunDir, record: dict[str, Any]) -> bool:
    cause, consequence = (_claim(run, record["nonce"], what) for what in _CLAIMS)
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    # Not its parents: the run may have been moved.
    cause.parent.mkdir(exist_ok=True)
    if record["class"] != PEER_LOST:
        claim, won = cause, create_once(cause, text)
    else:
        claim, won = consequence, not cause.exists() and create_once(consequence, text)
    if won:
        try:
            write_json(run.failure, record)
        except OSError:
            claim.unlink()
            raise
        if record["class"] == PEER_LOST and (known := read_json(cause)) is not None:
            # A cause was recorded meanwhile: it stays.
            write_json(run.failure, known)
    return won


def _claim(run: RunDir, nonce: str, what: str) -> Path:
    """The file for the first cause, or the first consequence, of an attempt."""
    return run.ranks(nonce).with_name(f"{nonce}.{what}.json")


def first_failure(run: RunDir, nonce: str) -> dict[str, Any] | None:
    """The first failure of an attempt; None without a record."""
    for what in _CLAIMS:
        if (record := read_json(_claim(run, nonce, what))) is not None:
            return dict(record)
    return None


def forget_failure(run: RunDir, nonce: str, *, is_reused: bool) -> None:
    """Delete the failure of an earlier attempt; keep one that a rank of this attempt has already recorded.

    is_reused  whether an earlier attempt may have had this nonce: then no failure under it stays
    """
    if is_reused:
        for what in _CLAIMS:
            _claim(run, nonce, what).unlink(missing_ok=True)
    if (known := first_failure(run, nonce)) is None:
        run.failure.unlink(missing_ok=True)
    elif read_object(run.failure).get("nonce") != nonce:
        # The end of the attempt before was recorded over it meanwhile.
        write_json(run.failure, known)
