"""Starting the ranks of a rendezvous in threads, for its tests."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from toolkit.distributed.rendezvous import Rendezvous, meet
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

SHORT_S = 0.3


def start(
    pool: ThreadPoolExecutor, run: RunDir, ranks: list[World], timeout_s: float, *way: Any
) -> list[Future[Rendezvous]]:
    """Let each rank meet the others; `way` as in `meet`."""
    return [pool.submit(meet, run, world, timeout_s, *way) for world in ranks]
