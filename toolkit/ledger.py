"""The ledger of a run: one attempt for each start, and who its ranks were."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

from toolkit.distributed import Group
from toolkit.files import append_json_line, read_json_lines
from toolkit.rundir import RunDir


class Attempt:
    """Two lines of attempts.jsonl: how this start began and how it ended. Rank 0 writes.

    Made by every rank (collective), it also writes who the ranks are.
    """

    def __init__(self, run: RunDir, group: Group) -> None:
        self._run = run
        self._group = group
        self._started = time.time()
        world = group.world
        ranks = group.gather(_describe_rank(group))
        self.number = 1 + len({line["attempt"] for line in read_json_lines(run.attempts)})
        self._hosts = list(dict.fromkeys(rank["host"] for rank in ranks))
        if world.is_main:
            run.failure.unlink(missing_ok=True)
            run.ranks(world.nonce).parent.mkdir(exist_ok=True)
            for rank in ranks:
                append_json_line(run.ranks(world.nonce), rank)

    def seconds(self) -> float:
        """Seconds of all attempts so far, this one included."""
        begun = {
            line["attempt"]: line["time_start"]
            for line in read_json_lines(self._run.attempts)
            if "time_start" in line
        }
        ended = {
            line["attempt"]: line["time_end"]
            for line in read_json_lines(self._run.attempts)
            if "time_end" in line
        }
        before: float = sum(ended[attempt] - begun[attempt] for attempt in ended)
        return before + time.time() - self._started

    def started(self, step: int, resumed: bool) -> None:
        world = self._group.world
        self._write(
            nonce=world.nonce,
            time_start=self._started,
            first_step=step,
            resumed=resumed,
            hosts=self._hosts,
            world_size=world.size,
            device=self._group.device.type,
        )

    def ended(self, step: int, why: str) -> None:
        self._write(time_end=time.time(), last_step=step, why=why)

    def _write(self, **facts: Any) -> None:
        if self._group.world.is_main:
            append_json_line(self._run.attempts, {"attempt": self.number, **facts})


def _describe_rank(group: Group) -> dict[str, Any]:
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
