"""Write the line of an attempt to attempts.jsonl, and the records of its ranks."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from toolkit.files import append_json_line
from toolkit.run.attempts.records import amend, read_attempts
from toolkit.run.events import note_event
from toolkit.run.failure.records import first_failure, forget_failure
from toolkit.run.fence import leave_if_fenced
from toolkit.run.run_dir import RunDir
from toolkit.system.processes import process_start_time
from toolkit.system.world import World

#: Seconds between two checks whether another attempt has replaced this one.
_CHECK_EVERY_S = 1.0
log = logging.getLogger("toolkit")


class Gathering(Protocol):
    """The part of a group of ranks that an attempt needs (toolkit.distributed.process_group.Group)."""

    @property
    def world(self) -> World: ...

    @property
    def device(self) -> object: ...

    @property
    def gpu(self) -> str: ...

    def gather(self, value: Any) -> list[Any]: ...


class Attempt:
    """One attempt: how it began, its progress, and how it ended. Rank 0 writes.

    Its line is written at the beginning, so that an attempt which dies before its first step counts.
    """

    def __init__(self, run: RunDir, world: World) -> None:
        self._run = run
        self._world = world
        self._started = time.time()
        self._line: dict[str, Any] = {}
        self._checked = time.monotonic()
        self.number = 0
        if world.is_main:
            self._begin()

    def _begin(self) -> None:
        # Only torchrun's starts may have the name of an earlier one.
        is_reused = self._world.master_addr is not None
        forget_failure(self._run, self._world.nonce, is_reused=is_reused)
        for path in self._run.ranks("").parent.glob("*.rank_*.json"):
            # Heartbeats of earlier attempts: attempts.jsonl holds their contents by now.
            path.unlink(missing_ok=True)
        self.number = 1 + max((each.attempt for each in read_attempts(self._run)), default=0)
        self._line = {
            "attempt": self.number,
            "job_id": self._world.job or None,
            "restart": self._world.restart,
            "nonce": self._world.nonce,
            "hosts": [socket.gethostname()],
            "world_size": self._world.size,
            "process_start": process_start_time(),
            "time_start": self._started,
        }
        with suppress(OSError):
            append_json_line(self._run.attempts, self._line)

    def joined(self, group: Gathering, usable_gpus: int) -> None:
        """Record the ranks, and get the number of this attempt. Collective.

        usable_gpus   those that this process can use; with train.parallel: dp it computes on all of them
        """
        world = group.world
        this_rank = {
            "rank": world.rank,
            "local_rank": world.local_rank,
            "world_size": world.size,
            "node": world.node,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "device": str(group.device),
            "gpu": group.gpu or None,
            "usable_gpus": usable_gpus,
            "cuda_visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
            "master_addr": os.environ["MASTER_ADDR"],
            "master_port": int(os.environ["MASTER_PORT"]),
        }
        ranks = group.gather({**this_rank, "attempt": self.number})
        self.number = ranks[0].pop("attempt")
        self._line["device"] = str(group.device).partition(":")[0]
        self._record(ranks)

    def met(self, ranks: Sequence[Mapping[str, Any]]) -> None:
        """Record ranks that form no process group: at least the number and host of each."""
        self._record(ranks)
        self.noted()

    def _record(self, ranks: Sequence[Mapping[str, Any]]) -> None:
        self._line["hosts"] = list(dict.fromkeys(rank["host"] for rank in ranks))
        if self._world.is_main:
            path = self._run.ranks(self._world.nonce)
            with suppress(OSError):
                path.parent.mkdir(exist_ok=True)
                for rank in ranks:
                    append_json_line(path, {**rank, "attempt": self.number})

    def seconds(self) -> float:
        """Seconds of all earlier attempts with a known end, and of this one so far."""
        earlier = (each for each in read_attempts(self._run) if each.attempt != self.number)
        before = sum(each.seconds for each in earlier)
        return before + max(0.0, time.time() - self._started)

    def computes_in(self, precision: str) -> None:
        """Record the precision; log a warning and note an event if the previous attempt had another one."""
        before = [each.precision for each in read_attempts(self._run) if each.precision]
        self.noted(precision=precision)
        if self._world.is_main and before and before[-1] != precision:
            what = f"this attempt computes in {precision}, the previous one computed in {before[-1]}"
            log.warning("%s: train.precision=auto depends on the kind of GPU", what)
            note_event(self._run, "precision_changed", why=what)

    def started(self, step: int | None, resumed: bool) -> None:
        """Record the step at which training starts; None if there are no steps."""
        self.noted(first_step=step, resumed=resumed)

    def leave_if_replaced(self) -> None:
        """End this process if another attempt has replaced this one. Call it before each write of rank 0.

        It checks at most once a second. A process that was frozen for longer checks before its next write.
        """
        now = time.monotonic()
        if self._world.is_main and now - self._checked > _CHECK_EVERY_S:
            leave_if_fenced(self._run, self._world.nonce)
            self._checked = now

    def stepped(self) -> None:
        """Called after each step; after the first one, record how long the start took."""
        if self._world.is_main and "first_step_s" not in self._line:
            self.stepped_at(time.time())

    def stepped_at(self, moment: float) -> None:
        """Record that the first step was done at a moment, in seconds since 1970."""
        self.noted(
            first_step_s=round(moment - process_start_time(), 3),
            first_step_after_start_s=round(moment - self._started, 3),
        )

    def trained_at(self, moment: float) -> None:
        """Record that training had ended at a moment, or that no step was left, in seconds since 1970."""
        self.noted(trained_after_start_s=round(moment - self._started, 3))

    def ended(self, last_step: int | None, why: str, **facts: Any) -> None:
        """Record the end of the attempt, whether it succeeded or failed."""
        self.noted(time_end=time.time(), last_step=last_step, why=why, **facts)

    def failed(self, last_step: int | None) -> None:
        """Record the first failure of this attempt, if one is known."""
        failure = first_failure(self._run, self._world.nonce)
        if failure is not None:
            self.ended(last_step, **failure_facts(failure))

    def noted(self, **facts: Any) -> None:
        """Record facts as they become known, such as `saved`: fields of an AttemptRecord."""
        self._line.update(facts)
        if self._world.is_main:
            amend(self._run, self._line)


def failure_facts(failure: dict[str, Any]) -> dict[str, Any]:
    """The facts of failure.json that the line of an attempt holds."""
    facts = {name: failure.get(name) for name in ("host", "rank", "step", "blamed")}
    return {"why": failure["class"], **facts}
