"""How a start of a run ended, where it could not say so itself: from what it left in the folder."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.attempts.ledger import amend, failure_facts, read_attempts
from toolkit.failure.classes import LAUNCH, OOM_KILLED
from toolkit.failure.records import (
    KILLED,
    KINDS,
    PEER_LOST,
    failure_record,
    first_failure,
    host_of,
    last_heartbeat,
    silent_record,
)
from toolkit.files import read_json, read_json_lines, write_json
from toolkit.rundir import RunDir
from toolkit.world import World

#: Why a start ended that the scheduler took back without a word, and started again.
REQUEUED = "requeued"


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """What is known of ranks that died without a word: the class of that, and which rank it was, if known."""

    kind: str = KILLED
    rank: int | None = None


_NOTHING_KNOWN = Silence()


def conclude(
    run: RunDir,
    code: int,
    *,
    nonce: str | None = None,
    job: str | None = None,
    restart: int | None = None,
    silence: Silence = _NOTHING_KNOWN,
) -> None:
    """Complete the ledger and failure.json after a start whose ranks ended with a failing status.

    Of several failures the first stands; where all who failed had only lost a peer, the peer that said
    nothing is named. What is given of the start's nonce, job and restart tells its line from that of an
    earlier one: a start that died before it could write any gets one here. Calling it twice is harmless
    where one of them is given.
    """
    attempts = read_attempts(run)
    line = attempts[-1] if attempts else None
    identity = {"nonce": nonce, "job_id": job, "restart": restart}
    given = {name: value for name, value in identity.items() if value is not None}
    if line is None or not _is_of(line, given):
        _add_silent_start(run, attempts, code, given)
    elif _is_open(line):
        memory = "memory ran out, " if silence.kind == OOM_KILLED else ""
        _complete(run, line, f"{memory}status {code}", silence)
    elif not line.get("concluded"):
        amend(run, {"attempt": line["attempt"], "concluded": True})


def settle(run: RunDir, world: World) -> None:
    """Complete the line of the start before this one, if that could not. Rank 0 calls it as it starts."""
    attempts = read_attempts(run)
    if not attempts or not _is_open(attempts[-1]):
        return
    line = attempts[-1]
    failure = first_failure(run, line.get("nonce", ""))
    is_same_job = bool(world.job) and line.get("job_id") == world.job
    taken_back = is_same_job and line.get("restart", 0) < world.restart
    if taken_back and (failure is None or failure["class"] == PEER_LOST):
        # By the scheduler: a preemption without time to save, or a host that is gone, which it knows.
        amend(run, {**_end(run, line), "why": REQUEUED, "concluded": True})
    else:
        _complete(run, line, "nobody saw how", _NOTHING_KNOWN)


def _is_of(line: dict[str, Any], given: dict[str, Any]) -> bool:
    if given:
        return all(line.get(name) == value for name, value in given.items())
    # Nobody says whose failure it is: an explained line is that of an earlier start.
    return not line.get("concluded") and (_is_open(line) or line["why"] in KINDS)


def _is_open(line: dict[str, Any]) -> bool:
    """Whether more can be said about how a start ended than it could say itself."""
    return not line.get("concluded") and line.get("why", PEER_LOST) == PEER_LOST


def _complete(run: RunDir, line: dict[str, Any], how: str, silence: Silence) -> None:
    failure = _explanation(run, line, how, silence) or _everybody_died(run, line, how, silence)
    present = read_json(run.failure)
    if present is None or present.get("nonce") != failure["nonce"] or present["class"] != failure["class"]:
        write_json(run.failure, failure)
    amend(run, {**_end(run, line), **failure_facts(failure), "concluded": True})


def _explanation(run: RunDir, line: dict[str, Any], how: str, silence: Silence) -> dict[str, Any] | None:
    """What failed first in a start; of a rank that died without a word, by who else spoke."""
    nonce = line.get("nonce", "")
    failure = first_failure(run, nonce)
    if failure is not None and failure["class"] != PEER_LOST:
        return failure
    if silence.rank is not None:
        return _one_died(run, line, how, silence.kind, silence.rank)
    spoke = {
        event.get("rank")
        for event in read_json_lines(run.events)
        if event.get("event") == "failure" and event.get("nonce") == nonce
    }
    everybody = {rank["rank"]: rank["host"] for rank in read_json_lines(run.ranks(nonce)) if "rank" in rank}
    silent = [rank for rank in sorted(everybody) if rank not in spoke]
    if not spoke or not silent or len({everybody[rank] for rank in silent}) > 1:
        return failure
    rank, host = silent[0], everybody[silent[0]]
    who = f"rank {rank}" if len(silent) == 1 else f"ranks {', '.join(map(str, silent))}"
    return silent_record(run, nonce, silence.kind, f"{who} on {host} died without a word ({how})", rank, host)


def _everybody_died(run: RunDir, line: dict[str, Any], how: str, silence: Silence) -> dict[str, Any]:
    hosts = line.get("hosts") or ["unknown"]
    what = f"all ranks died without a word ({how})"
    failure = silent_record(run, line.get("nonce", ""), silence.kind, what, 0, hosts[0])
    # Of several hosts nobody can say which one it was.
    return failure if len(hosts) == 1 else {**failure, "blamed": None}


def _one_died(run: RunDir, line: dict[str, Any], how: str, kind: str, rank: int) -> dict[str, Any]:
    nonce = line.get("nonce", "")
    host = host_of(run, nonce, rank) or (line.get("hosts") or ["unknown"])[0]
    return silent_record(run, nonce, kind, f"rank {rank} on {host} was killed ({how})", rank, host)


def _end(run: RunDir, line: dict[str, Any]) -> dict[str, Any]:
    """When and where a start ended that did not say so: where it was last seen."""
    heartbeat = last_heartbeat(run, line.get("nonce", ""), 0)
    start, step = line.get("time_start", time.time()), line.get("first_step", 0)
    return {
        "attempt": line["attempt"],
        "time_end": line.get("time_end", max(start, heartbeat.get("time", start))),
        "last_step": line.get("last_step", max(step, heartbeat.get("step", step))),
    }


def _add_silent_start(run: RunDir, attempts: list[dict[str, Any]], code: int, given: dict[str, Any]) -> None:
    """Add the line of a start that wrote none, such as one that could not import the code."""
    failure = _unclaimed_failure(run, attempts, given.get("nonce"))
    if failure is None:
        failure = _failure_before_start(given.get("nonce", ""), code)
        write_json(run.failure, failure)
    step = attempts[-1].get("last_step", 0) if attempts else 0
    now = time.time()
    amend(
        run,
        {
            "attempt": 1 + (attempts[-1]["attempt"] if attempts else 0),
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
    run: RunDir, attempts: Sequence[dict[str, Any]], nonce: str | None
) -> dict[str, Any] | None:
    """The failure of a start that has no line."""
    if nonce is not None:
        return first_failure(run, nonce)
    failure = read_json(run.failure)
    if failure is None or failure.get("nonce") in {line.get("nonce") for line in attempts}:
        return None
    return dict(failure)


def _failure_before_start(nonce: str, code: int) -> dict[str, Any]:
    kind, how = _death_before_start(code)
    message = f"the ranks ended with {how} before the run began; their logs say why"
    failure = failure_record(
        nonce, kind, message, rank=0, host=socket.gethostname(), phase="start", step=None
    )
    return {**failure, "blamed": None}


def _death_before_start(code: int) -> tuple[str, str]:
    """The class of failure that a status tells of, and the status in words."""
    number = -code if code < 0 else code - 128
    if number in {each.value for each in signal.Signals}:
        return KILLED, signal.Signals(number).name
    # Above all signals: srun's word for an error of Slurm, whose numbers begin at 1000, cut to a byte.
    return LAUNCH if number > signal.SIGRTMAX else "exception", f"status {code}"
