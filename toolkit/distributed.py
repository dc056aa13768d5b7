"""The processes of a run as one group: joining, sums, and the value that all of them agree on."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from toolkit.config.schema import Train
from toolkit.errors import RendezvousError
from toolkit.rendezvous import meet
from toolkit.rundir import RunDir
from toolkit.world import World

_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Group:
    """This process among those of the run, and the device that it computes on.

    shares_folder  whether all of them see the same run folder
    """

    world: World
    device: torch.device
    shares_folder: bool = True

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Sum a tensor over the ranks, in place. Collective.

        Where every element is non-zero on one rank at most, the result is exact: adding zeros
        rounds nothing. Everything that must not depend on the world size is summed that way.
        """
        if self.world.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def gather_rows(self, rows: np.ndarray) -> np.ndarray:
        """Fill in the rows that other ranks computed (zero here). Collective; same shape everywhere."""
        return self.begin_rows(rows)()

    def begin_rows(self, rows: np.ndarray) -> Callable[[], np.ndarray]:
        """Begin to gather rows; what is returned waits for them. Collective; same shape everywhere."""
        if self.world.size == 1:
            return lambda: rows
        tensor = torch.from_numpy(rows).to(self.device)
        work = dist.all_reduce(tensor, async_op=True)

        def wait() -> np.ndarray:
            work.wait()
            return np.asarray(tensor.cpu().numpy())

        return wait

    def agree(self, value: Any) -> Any:
        """Give every rank the value of rank 0. Collective."""
        if self.world.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0, device=self.device)
        return box[0]

    def gather(self, value: Any) -> list[Any]:
        """The values of all ranks, by rank. Collective."""
        if self.world.size == 1:
            return [value]
        values: list[Any] = [None] * self.world.size
        dist.all_gather_object(values, value)
        return values

    def main_first(self, work: Callable[[], object]) -> None:
        """Let rank 0 do what the others then build on, however long it takes. Collective.

        They wait at the store, which has no patience to lose; it goes away with rank 0.
        """
        self._first(work, self.world.is_main, ["main_first"])

    def nodes_first(self, work: Callable[[], object]) -> None:
        """Let one rank of each machine do what the others of it then build on. Collective."""
        done = [f"node_first/{node}" for node in range(self.world.nodes)]
        self._first(work, self.world.local_rank == 0, done, done[self.world.node])

    def _first(
        self, work: Callable[[], object], is_first: bool, done: Sequence[str], own: str | None = None
    ) -> None:
        if is_first:
            work()
        if self.world.size == 1:
            return
        store = dist.distributed_c10d._get_default_store()
        if is_first:
            store.set(own or done[0], "done")
        while not store.check(list(done)):
            time.sleep(_POLL_S)
        self.barrier()

    def barrier(self) -> None:
        """Wait for all ranks. Collective."""
        if self.world.size > 1:
            self.sum(torch.zeros(1, device=self.device))


def choose_device(world: World, wanted: str) -> torch.device:
    """The device of this rank: its share of the visible GPUs, or the CPU.

    The scheduler's CUDA_VISIBLE_DEVICES is respected as it is: a task that sees one device takes
    that one, tasks that see all of the host's take theirs by local rank.
    """
    if wanted == "cpu" or (wanted == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise RendezvousError(
            f"train.device is cuda but no CUDA device is visible on {socket.gethostname()}: "
            "ask for GPUs in resources, or set train.device=auto"
        )
    device = torch.device("cuda", world.local_rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


@contextmanager
def join(run: RunDir, world: World, train: Train) -> Iterator[Group]:
    """Join the other ranks of the run; leave them at the end. Collective.

    Exports RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT meanwhile, as
    libraries expect them. Raises RendezvousError.
    """
    device = choose_device(world, train.device)
    if world.size == 1:
        with _exported(world):
            yield Group(world, device)
        return
    meeting = meet(world, run.rendezvous(world.nonce), train.rendezvous_timeout_s, train.rendezvous)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    timeout = timedelta(seconds=train.collective_timeout_s)
    dist.init_process_group(
        backend, store=meeting.store, rank=world.rank, world_size=world.size, timeout=timeout
    )
    try:
        with _exported(meeting.world):
            yield Group(meeting.world, device)
    finally:
        dist.destroy_process_group()
        meeting.close()


@contextmanager
def _exported(world: World) -> Iterator[None]:
    """Tell libraries of the world by their variables; a later command of this process is no part of it."""
    variables = {
        "RANK": str(world.rank),
        "LOCAL_RANK": str(world.local_rank),
        "WORLD_SIZE": str(world.size),
        "LOCAL_WORLD_SIZE": str(world.local_size),
        "GROUP_RANK": str(world.node),
        "MASTER_ADDR": world.master_addr or "127.0.0.1",
        "MASTER_PORT": str(world.master_port or 0),
    }
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)
        os.environ.update(before)
