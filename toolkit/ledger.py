"""The ledger of a run: one attempt for each start, and who its ranks were."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any

from toolkit.distributed import Group
from toolkit.files import append_json_line, read_json_lines, write_atomic
from toolkit.rundir import RunDir


class Attempt:
    """One line of attempts.jsonl: how this start began, and, once it has ended, how. Rank 0 writes.

    Made by every rank (collective), it also writes who the ranks are.
    """

    def __init__(self, run: RunDir, group: Group) -> None:
        self._run = run
        self._group = group
        self._started = time.time()
        world = group.world
        ranks = group.gather(_describe_rank(group))
        self.number = 1 + len({line["attempt"] for line in read_json_lines(run.attempts)})
        self._line: dict[str, Any] = {}
        self._hosts = list(dict.fromkeys(rank["host"] for rank in ranks))
        if world.is_main:
            run.failure.unlink(missing_ok=True)
            run.ranks(world.nonce).parent.mkdir(exist_ok=True)
            for rank in ranks:
                append_json_line(run.ranks(world.nonce), rank)

    def seconds(self) -> float:
        """Seconds of all attempts that ended in order, and of this one so far."""
        before: float = sum(
            line["time_end"] - line["time_start"]
            for line in read_json_lines(self._run.attempts)
            if "time_end" in line
        )
        return before + time.time() - self._started

    def started(self, step: int, resumed: bool) -> None:
        """Write the line of this start."""
        world = self._group.world
        self._line = {
            "attempt": self.number,
            "job_id": world.job or None,
            "restart": world.restart,
            "nonce": world.nonce,
            "hosts": self._hosts,
            "world_size": world.size,
            "device": self._group.device.type,
            "time_start": self._started,
            "first_step": step,
            "resumed": resumed,
        }
        if world.is_main:
            append_json_line(self._run.attempts, self._line)

    def ended(self, step: int, why: str) -> None:
        """Complete the line. That of a start which was killed stays as it began."""
        self._line.update(time_end=time.time(), last_step=step, why=why)
        if self._group.world.is_main:
            earlier = [line for line in read_json_lines(self._run.attempts) if line["attempt"] != self.number]
            lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in (*earlier, self._line))
            write_atomic(self._run.attempts, "".join(lines))


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
