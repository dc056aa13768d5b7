"""Record the end of an attempt that could not do so itself, from the files that it left."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.exit_codes import ExitCode
from toolkit.files import read_json, write_json
from toolkit.run.attempts.attempt import failure_facts
from toolkit.run.attempts.records import AttemptRecord, amend, read_attempts
from toolkit.run.events import failure_events
from toolkit.run.failure.classes import FAILURE_CLASSES, KILLED, LAUNCH, OOM_KILLED, PEER_LOST
from toolkit.run.failure.log_end import first_cause
from toolkit.run.failure.records import (
    failure_record,
    first_failure,
    last_heartbeat,
    last_progress,
    silent_record,
)
from toolkit.run.phases import Phase
from toolkit.run.records.from_json import whole
from toolkit.run.records.ranks import hosts_of
from toolkit.run.run_dir import RunDir
from toolkit.system.output.sanitize import number
from toolkit.system.world import World

#: The reason if the scheduler ended an attempt without a signal and started it again.
REQUEUED = "requeued"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashHint:
    """The caller's knowledge of ranks without a failure record: the class, and the rank if known.

    codes   exit statuses of all ranks by rank; empty if unknown
    """

    kind: str = KILLED
    rank: int | None = None
    codes: tuple[int, ...] = ()


_NOTHING_KNOWN = CrashHint()
_UNKNOWN = "cause unknown"


def record_crash(
    run: RunDir,
    code: int,
    *,
    nonce: str | None = None,
    job: str | None = None,
    restart: int | None = None,
    hint: CrashHint = _NOTHING_KNOWN,
) -> None:
    """Complete attempts.jsonl and failure.json after an attempt whose ranks ended with a failing status.

    Of several failures the first one counts; if all recorded failures are lost peers, the peer without a
    record is named. nonce, job and restart identify the attempt; one that died before it could write its
    line gets one here. With any of them given, calling this twice is harmless.
    """
    attempts = read_attempts(run)
    last = attempts[-1] if attempts else None
    identity = {"nonce": nonce, "job_id": job, "restart": restart}
    given = {name: value for name, value in identity.items() if value is not None}
    if last is None or not _is_of(last, given):
        _add_silent_start(run, attempts, code, given)
    elif _is_open(last):
        memory = "memory ran out, " if hint.kind == OOM_KILLED else ""
        _complete(run, last, f"{memory}status {code}", hint)
    elif not last.concluded:
        amend(run, {"attempt": last.attempt, "concluded": True})


def conclude_attempt(run: RunDir, nonce: str, code: int) -> None:
    """Complete the line of an attempt that a second Ctrl-C or a wrong input has ended, if it is still open.

    A cause that a rank has recorded is kept. A record of a lost peer names no cause.
    """
    last = next((each for each in read_attempts(run) if each.nonce == nonce), None)
    if last is None or not _is_open(last):
        return
    failure = first_failure(run, nonce)
    if failure is not None and failure["class"] != PEER_LOST:
        _complete(run, last, f"status {code}", _NOTHING_KNOWN)
    elif code == ExitCode.INTERRUPTED:
        run.failure.unlink(missing_ok=True)
        amend(run, {**_end(run, last), "why": signal.SIGINT.name, "concluded": True})


def close_open_attempt(run: RunDir, world: World) -> None:
    """Complete the line of the previous attempt if it is open. Rank 0 calls it at its start."""
    attempts = read_attempts(run)
    if not attempts or not _is_open(attempts[-1]):
        return
    last = attempts[-1]
    failure = first_failure(run, last.nonce)
    is_same_job = bool(world.job) and last.job_id == world.job
    was_requeued = is_same_job and last.restart < world.restart
    if was_requeued and (failure is None or failure["class"] == PEER_LOST):
        # The scheduler ended it: a preemption without time to save, or a lost host.
        amend(run, {**_end(run, last), "why": REQUEUED, "concluded": True})
    else:
        _complete(run, last, _UNKNOWN, _NOTHING_KNOWN)


def _is_of(last: AttemptRecord, given: dict[str, Any]) -> bool:
    if given:
        return all(getattr(last, name) == value for name, value in given.items())
    # Without an identity, an attempt that is already explained counts as an earlier one.
    return not last.concluded and (_is_open(last) or last.why in FAILURE_CLASSES)


def _is_open(last: AttemptRecord) -> bool:
    """Whether the end of an attempt is not explained yet."""
    return not last.concluded and last.why in (None, PEER_LOST)


def _complete(run: RunDir, last: AttemptRecord, how: str, hint: CrashHint) -> None:
    failure = _explanation(run, last, how, hint) or _all_died(run, last, how, hint)
    present = read_json(run.failure)
    if present is None or present.get("nonce") != failure["nonce"] or present["class"] != failure["class"]:
        write_json(run.failure, failure)
    amend(run, {**_end(run, last), **failure_facts(failure), "concluded": True})


def _explanation(run: RunDir, last: AttemptRecord, how: str, hint: CrashHint) -> dict[str, Any] | None:
    """The first failure of an attempt; a rank without a record is found by the records of the others."""
    nonce = last.nonce
    failure = first_failure(run, nonce)
    if failure is not None and failure["class"] != PEER_LOST:
        return failure
    everybody = hosts_of(run, nonce, last.attempt)
    codes = dict(enumerate(hint.codes)) if len(hint.codes) == last.world_size else {}
    if hint.rank is not None:
        host = everybody.get(hint.rank) or (last.hosts or ("unknown",))[0]
        what = f"rank {hint.rank} on {host} was killed ({how})"
        return silent_record(run, nonce, hint.kind, what, hint.rank, host)
    if (
        hint.kind == KILLED
        and (cause := first_cause(run, nonce, {rank: codes.get(rank) for rank in everybody})) is not None
    ):
        # A library aborted it: the record gets the message in its log.
        rank, _ = cause
        what = f"rank {rank} on {everybody[rank]} was aborted ({how})"
        return silent_record(run, nonce, KILLED, what, rank, everybody[rank], codes.get(rank))
    silent = _silent_ranks(run, last, everybody)
    if not silent or len({everybody[rank] for rank in silent}) > 1:
        return failure
    rank, host = silent[0], everybody[silent[0]]
    who = f"rank {rank}" if len(silent) == 1 else f"ranks {', '.join(map(str, silent))}"
    if codes:
        # `how` has the status of another rank, one that has recorded why it failed.
        how = f"status {', '.join(str(codes[each]) for each in silent)}"
    what = f"{who} on {host} exited without an error message ({how})"
    return silent_record(run, nonce, hint.kind, what, rank, host, codes.get(rank))


def _silent_ranks(run: RunDir, last: AttemptRecord, everybody: Mapping[int, str]) -> list[int]:
    """The ranks without a record of their end; none if no rank has one."""
    nonce = last.nonce
    is_reused = sum(each.nonce == nonce for each in read_attempts(run)) > 1
    began = (last.process_start or last.time_start or 0.0) if is_reused else 0.0
    spoke = {each.rank for each in failure_events(run) if each.nonce == nonce and each.time >= began}
    # Ranks that started a process have recorded its end.
    spoke |= {rank for rank in everybody if "ended" in (read_json(run.process(nonce, rank)) or {})}
    return [rank for rank in sorted(everybody) if rank not in spoke] if spoke else []


def _all_died(run: RunDir, last: AttemptRecord, how: str, hint: CrashHint) -> dict[str, Any]:
    hosts = last.hosts or ("unknown",)
    what = f"all ranks exited without an error message ({how})"
    code = hint.codes[0] if hint.codes else None
    failure = silent_record(run, last.nonce, hint.kind, what, 0, hosts[0], code)
    # With several hosts it is unknown which one failed. Of unknown cause, it may have been cancelled.
    return failure if len(hosts) == 1 and how != _UNKNOWN else {**failure, "blamed": None}


def _end(run: RunDir, last: AttemptRecord) -> dict[str, Any]:
    """Time and step of the end of an attempt; unrecorded ones come from its newest sign of life."""
    signs = (last_heartbeat(run, last.nonce, 0), last_progress(run, last.attempt))
    # An attempt that never began to train has saved nothing.
    saved = run.checkpoint_steps() if last.first_step is not None else ()
    ended = max([last.time_start or time.time(), *(number(each.get("time")) or 0.0 for each in signs)])
    done: int | None = max([last.first_step or 0, *saved, *(whole(each.get("step")) or 0 for each in signs)])
    if last.first_step is None:
        # Unknown, as of a command without steps, unless it has logged one.
        done = done or None
    return {
        "attempt": last.attempt,
        "time_end": ended if last.time_end is None else last.time_end,
        "last_step": done if last.last_step is None else last.last_step,
    }


def _add_silent_start(
    run: RunDir, attempts: Sequence[AttemptRecord], code: int, given: dict[str, Any]
) -> None:
    """Add the line of an attempt that wrote none, such as one that could not import the code."""
    failure = _unclaimed_failure(run, attempts, given.get("nonce"))
    if failure is None:
        failure = _failure_before_start(given.get("nonce", ""), code)
        write_json(run.failure, failure)
    step = max(run.checkpoint_steps(), default=0)
    now = time.time()
    amend(
        run,
        {
            "attempt": 1 + (attempts[-1].attempt if attempts else 0),
            **given,
            "hosts": [failure["host"]],
            "time_start": now,
            "first_step": step,
            "time_end": now,
            "last_step": step,
            **failure_facts(failure),
            "concluded": True,
        },
    )


def _unclaimed_failure(
    run: RunDir, attempts: Sequence[AttemptRecord], nonce: str | None
) -> dict[str, Any] | None:
    """The failure of an attempt that has no line."""
    if nonce is not None:
        return first_failure(run, nonce)
    failure = read_json(run.failure)
    if failure is None or failure.get("nonce") in {each.nonce for each in attempts}:
        return None
    return dict(failure)


def _failure_before_start(nonce: str, code: int) -> dict[str, Any]:
    number = -code if code < 0 else code - 128
    if number in {each.value for each in signal.Signals}:
        kind, how = KILLED, signal.Signals(number).name
    else:
        # Above all signals: the lowest byte of the error of a scheduler that could not start the rank.
        kind, how = LAUNCH if number > signal.SIGRTMAX else "exception", f"status {code}"
    message = f"the ranks ended with {how} before the run began; their logs say why"
    failure = failure_record(
        nonce, kind, message, rank=0, host=socket.gethostname(), phase=Phase.START, step=None
    )
    return {**failure, "blamed": None}
