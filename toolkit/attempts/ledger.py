"""The ledger of a run: one line of attempts.jsonl for each start, and who its ranks were."""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from typing import Any, Protocol

from toolkit.failure.records import first_failure, forget_failure
from toolkit.files import append_json_line, read_json_lines, write_atomic
from toolkit.process import process_began
from toolkit.rundir import RunDir
from toolkit.world import World


class Gathering(Protocol):
    """What the ledger asks of a group of ranks (toolkit.distributed.Group)."""

    @property
    def world(self) -> World: ...

    @property
    def device(self) -> object: ...

    def gather(self, value: Any) -> list[Any]: ...


def read_attempts(run: RunDir) -> list[dict[str, Any]]:
    """The starts of a run, oldest first; of several lines about one start the later ones complete it."""
    attempts: dict[int, dict[str, Any]] = {}
    for line in read_json_lines(run.attempts):
        if isinstance(line, dict) and isinstance(line.get("attempt"), int):
            attempts.setdefault(line["attempt"], {}).update(line)
    return [attempts[number] for number in sorted(attempts)]


def explain_last(run: RunDir, why: str, **facts: Any) -> None:
    """Say why the newest start ended, where more is known than it knew itself."""
    attempts = read_attempts(run)
    if attempts:
        amend(run, {"attempt": attempts[-1]["attempt"], "why": why, **facts})


def amend(run: RunDir, line: dict[str, Any]) -> None:
    """Add to the line of one start, or add the line. A record for people: a full disk ends nothing."""
    attempts = {attempt["attempt"]: attempt for attempt in read_attempts(run)}
    attempts[line["attempt"]] = {**attempts.get(line["attempt"], {}), **line}
    with suppress(OSError):
        write_atomic(
            run.attempts,
            "".join(json.dumps(attempts[number], ensure_ascii=False) + "\n" for number in sorted(attempts)),
        )


class Attempt:
    """One start: how it began, how far it came, and, once it has ended, how. Rank 0 writes.

    The line is there from the beginning, so that a start which dies before its first step counts.
    """

    def __init__(self, run: RunDir, world: World) -> None:
        self._run = run
        self._world = world
        self._started = time.time()
        self._line: dict[str, Any] = {}
        self.number = 0
        if world.is_main:
            self._begin()

    def _begin(self) -> None:
        forget_failure(self._run, self._world.nonce)
        for path in self._run.ranks("").parent.glob("*.rank_*.json"):
            # Heartbeats of earlier starts: what they tell stands in the ledger by now.
            path.unlink(missing_ok=True)
        self.number = 1 + max((line["attempt"] for line in read_attempts(self._run)), default=0)
        self._line = {
            "attempt": self.number,
            "job_id": self._world.job or None,
            "restart": self._world.restart,
            "nonce": self._world.nonce,
            "hosts": [socket.gethostname()],
            "world_size": self._world.size,
            "process_start": process_began(),
            "time_start": self._started,
        }
        with suppress(OSError):
            append_json_line(self._run.attempts, self._line)

    def joined(self, group: Gathering) -> None:
        """Write down who the ranks are, and learn the number of this start. Collective."""
        ranks = group.gather({**_describe_rank(group), "attempt": self.number})
        self.number = ranks[0].pop("attempt")
        self._line.update(hosts=list(dict.fromkeys(rank["host"] for rank in ranks)), device=_kind(group))
        if self._world.is_main:
            path = self._run.ranks(self._world.nonce)
            with suppress(OSError):
                path.parent.mkdir(exist_ok=True)
                for rank in ranks:
                    append_json_line(path, {**rank, "attempt": self.number})

    def seconds(self) -> float:
        """Seconds of all earlier starts of which the end is known, and of this one so far."""
        before: float = sum(
            line["time_end"] - line["time_start"]
            for line in read_attempts(self._run)
            if "time_end" in line and line["attempt"] != self.number
        )
        return before + time.time() - self._started

    def started(self, step: int, resumed: bool) -> None:
        """Write from which step on it trains."""
        self._amend(first_step=step, resumed=resumed)

    def stepped(self) -> None:
        """Called after each step: the first one tells how long the start took."""
        if self._world.is_main and "first_step_s" not in self._line:
            now = time.time()
            self._amend(
                first_step_s=round(now - process_began(), 3),
                first_step_after_start_s=round(now - self._started, 3),
            )

    def ended(self, last_step: int, why: str, **facts: Any) -> None:
        """Write that it ended in order, or that it failed. A killed one cannot."""
        self._amend(time_end=time.time(), last_step=last_step, why=why, **facts)

    def failed(self, last_step: int) -> None:
        """Write that it failed: whose failure it was, as far as is known by now."""
        failure = first_failure(self._run, self._world.nonce)
        if failure is not None:
            self.ended(last_step, **failure_facts(failure))

    def _amend(self, **facts: Any) -> None:
        self._line.update(facts)
        if self._world.is_main:
            amend(self._run, self._line)


def failure_facts(failure: dict[str, Any]) -> dict[str, Any]:
    """What the line of a start takes over from failure.json."""
    facts = {name: failure.get(name) for name in ("host", "rank", "step", "blamed")}
    return {"why": failure["class"], **facts}


def _kind(group: Gathering) -> str:
    return str(group.device).partition(":")[0]


def _describe_rank(group: Gathering) -> dict[str, Any]:
    """Who this rank is, for people who ask which process ran where."""
    world = group.world
    return {
        "rank": world.rank,
        "local_rank": world.local_rank,
        "world_size": world.size,
        "node": world.node,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "device": str(group.device),
        "cuda_visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "master_addr": os.environ["MASTER_ADDR"],
        "master_port": int(os.environ["MASTER_PORT"]),
    }
