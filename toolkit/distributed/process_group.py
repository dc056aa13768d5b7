"""The process group of a run: joining, sums, and agreement on values.

Ranks exchange numbers and JSON, never objects: torch would unpickle objects, which can run code.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from toolkit.config.schema import Train
from toolkit.distributed.devices import Assignment, RankDevices, assign_device, find_devices, make_current
from toolkit.distributed.nccl import connecting, set_up_nccl
from toolkit.distributed.rendezvous import Rendezvous, meet
from toolkit.distributed.secure.secret import derive
from toolkit.errors import RendezvousError, UserError
from toolkit.run.events import note_event
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

_POLL_S = 0.1
_CPU = torch.device("cpu")
#: Largest size of one value or chunk, so that a rank cannot fill the memory of the others.
_MOST_BYTES = 1 << 28
#: The same for messages to rank 0 alone: the outputs of a batch may have many classes.
_MOST_SENT_BYTES = 1 << 34
#: Seconds that all ranks get to read the same error.
_REFUSAL_S = 5.0

log = logging.getLogger("toolkit")


@dataclass(frozen=True, slots=True)
class Group:
    """This process as a member of the group, and its device.

    shares_folder  whether all ranks see the same run folder
    gpu            UUID of the GPU; empty for the CPU
    is_alike       whether all ranks have the same kind of device, so that they round in the same way
    """

    world: World
    device: torch.device
    shares_folder: bool = True
    gpu: str = ""
    is_alike: bool = True
    #: Numbers the calls of main_first and nodes_first, which all ranks make in the same order.
    _turns: Iterator[int] = field(default_factory=count, init=False, repr=False, compare=False)

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Sum a tensor over the ranks, in place. Collective.

        If every element is non-zero on at most one rank, the result is exact, because adding zeros does not
        round. All results that must not depend on the world size are summed in this way.
        """
        if self.world.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def same(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy rank 0's value to every rank, in place, if the ranks have different kinds of devices.

        Collective in that case; otherwise it costs nothing, because all ranks have the same value.
        """
        if self.world.size > 1 and not self.is_alike:
            dist.broadcast(tensor, src=0)
        return tensor

    def begin_rows(self, rows: np.ndarray) -> Callable[[], np.ndarray]:
        """Start to fill in the rows that other ranks computed (zero here); call the result to wait for them.

        Collective; same shape everywhere.
        """
        if self.world.size == 1:
            return lambda: rows
        tensor = torch.from_numpy(rows).to(self.device, non_blocking=True)
        work = dist.all_reduce(tensor, async_op=True)

        def wait() -> np.ndarray:
            work.wait()
            return np.asarray(tensor.cpu().numpy())

        return wait

    def agree(self, value: Any) -> Any:
        """Return rank 0's value on every rank, after a round trip through JSON. Collective."""
        return json.loads(self.share(json.dumps(value).encode()))

    def share(self, content: bytes) -> bytes:
        """Return rank 0's bytes on every rank. Collective."""
        if self.world.size == 1:
            return content
        size = torch.tensor([len(content)], device=self.device)
        dist.broadcast(size, src=0)
        payload = _as_tensor(content, _checked(size), self.device)
        dist.broadcast(payload, src=0)
        return payload.cpu().numpy().tobytes()

    def gather(self, value: Any) -> list[Any]:
        """The values of all ranks, by rank, after a round trip through JSON. Collective."""
        content = json.dumps(value).encode()
        if self.world.size == 1:
            return [json.loads(content)]
        sizes = [torch.zeros(1, dtype=torch.int64, device=self.device) for _ in range(self.world.size)]
        dist.all_gather(sizes, torch.tensor([len(content)], device=self.device))
        longest = max(map(_checked, sizes))
        payloads = [torch.empty(longest, dtype=torch.uint8, device=self.device) for _ in sizes]
        dist.all_gather(payloads, _as_tensor(content, longest, self.device))
        return [
            json.loads(payload[: int(size)].cpu().numpy().tobytes())
            for payload, size in zip(payloads, sizes, strict=True)
        ]

    def send_to_main(self, content: bytes) -> None:
        """Send bytes to rank 0; block until it receives them."""
        dist.send(torch.tensor([len(content)]), dst=0)
        dist.send(_as_tensor(content, len(content), _CPU), dst=0)

    def receive(self, rank: int) -> bytes:
        """On rank 0: return the next bytes that a rank sends. Raises RendezvousError for too many."""
        size = torch.zeros(1, dtype=torch.int64)
        dist.recv(size, src=rank)
        payload = torch.empty(_checked(size, _MOST_SENT_BYTES), dtype=torch.uint8)
        dist.recv(payload, src=rank)
        return payload.numpy().tobytes()

    def main_first(self, work: Callable[[], object]) -> None:
        """Run work on rank 0 while the others wait, without a timeout. Collective.

        They poll the store, which has no timeout and ends with rank 0.
        """
        self._first(work, self.world.is_main, ["main_first"])

    def nodes_first(self, work: Callable[[], object]) -> None:
        """Run work on one rank of each machine while the others wait. Collective."""
        done = [f"node_first/{node}" for node in range(self.world.nodes)]
        self._first(work, self.world.local_rank == 0, done, done[self.world.node])

    def _first(
        self, work: Callable[[], object], is_first: bool, done: Sequence[str], own: str | None = None
    ) -> None:
        if is_first:
            work()
        if self.world.size == 1:
            return
        store, turn = dist.distributed_c10d._get_default_store(), next(self._turns)
        if is_first:
            store.set(f"{own or done[0]}/{turn}", "done")
        pause_s = _POLL_S / 64
        while not store.check([f"{each}/{turn}" for each in done]):
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _POLL_S)
        self.barrier()

    def any(self, value: bool) -> bool:
        """Whether the value is true on any rank. Collective."""
        return bool(self.sum(torch.tensor([float(value)])).item() > 0)

    def barrier(self) -> None:
        """Block until all ranks have called this. Collective."""
        # On the CPU: waiting for NCCL only orders the device's stream and does not block the host.
        self.sum(torch.zeros(1))


def _checked(size: torch.Tensor, most: int = _MOST_BYTES) -> int:
    """Return a number of bytes that another rank has announced. Raises RendezvousError if it is invalid."""
    count = int(size)
    if not 0 <= count <= most:
        raise RendezvousError(f"a rank announced {count} bytes, expected at most {most}")
    return count


def _as_tensor(content: bytes, size: int, device: torch.device) -> torch.Tensor:
    """Return a tensor of this size that begins with the bytes, cut off if they do not fit."""
    tensor = torch.zeros(size, dtype=torch.uint8)
    fitting = bytearray(content[:size])
    if fitting:
        tensor[: len(fitting)] = torch.frombuffer(fitting, dtype=torch.uint8)
    return tensor.to(device)


@contextmanager
def join(run: RunDir, world: World, train: Train) -> Iterator[Group]:
    """Join the other ranks of the run; leave the group at the end. Collective.

    Until then RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set, because
    libraries expect them. Raises RendezvousError, DeviceError, UserError.
    """
    devices = _find_devices(run, world, train.device)
    if world.size == 1:
        assigned = make_current(assign_device([devices], 0))
        with _exported(world):
            yield Group(world, assigned.device, gpu=assigned.gpu)
        return
    rendezvous = meet(run, world, train.rendezvous_timeout_s, train.rendezvous)
    try:
        assigned = _assign_device(rendezvous, devices, train.rendezvous_timeout_s)
        if assigned.device.type == "cuda":
            set_up_nccl(run, world.nonce, train.collective_timeout_s)
        with (
            _group(run, rendezvous, assigned.device, train.collective_timeout_s),
            _exported(rendezvous.world),
        ):
            yield Group(rendezvous.world, assigned.device, gpu=assigned.gpu, is_alike=assigned.is_alike)
    finally:
        rendezvous.close()


def _find_devices(run: RunDir, world: World, wanted: str) -> RankDevices:
    """Return the devices that this rank can use; log a warning about unused or foreign GPUs."""
    devices, warning = find_devices(world, wanted)
    if warning and world.local_rank == 0:
        note_event(run, "gpus_not_granted" if devices.gpus else "gpus_unused", rank=world.rank, why=warning)
        log.warning("%s", warning)
    return devices


def _assign_device(rendezvous: Rendezvous, devices: RankDevices, timeout_s: float) -> Assignment:
    """Choose the device of this rank, so that no two ranks share a GPU. Collective."""
    ranks = rendezvous.exchange("device", asdict(devices), timeout_s)
    try:
        return make_current(assign_device([RankDevices.from_json(each) for each in ranks], devices.rank))
    except UserError as error:
        # All ranks raise the same error; rank 0 keeps the store open until all of them have it.
        with suppress(RendezvousError, RuntimeError):
            rendezvous.exchange("refusal", str(error), _REFUSAL_S)
        raise


@contextmanager
def _group(run: RunDir, rendezvous: Rendezvous, device: torch.device, timeout_s: float) -> Iterator[None]:
    """Create the process group of torch; destroy it at the end, but not after an error with NCCL.

    NCCL would wait there for the other ranks, which are in a collective that this rank will never join. This
    process ends soon. Its launcher ends the others.
    """
    on_gpu, world = device.type == "cuda", rendezvous.world
    with connecting(run, world, timeout_s) if on_gpu else nullcontext():
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if on_gpu else "gloo",
            store=rendezvous.store,
            rank=world.rank,
            world_size=world.size,
            timeout=timedelta(seconds=timeout_s),
            # NCCL connects now, so that faults of these devices are found before the first step.
            device_id=device if on_gpu else None,
        )
    try:
        _check_peers(rendezvous)
        yield
    except BaseException:
        if not on_gpu:
            dist.destroy_process_group()
        raise
    dist.destroy_process_group()


def _check_peers(rendezvous: Rendezvous) -> None:
    """Check that gloo has connected only ranks of this run. Collective.

    gloo does not authenticate: another process in the network may have connected before a rank.
    Raises RendezvousError.
    """
    world = rendezvous.world
    expected = [_as_tensor(derive(rendezvous.secret, f"rank {rank}"), 32, _CPU) for rank in range(world.size)]
    found = [torch.zeros(32, dtype=torch.uint8) for _ in expected]
    dist.all_gather(found, expected[world.rank])
    odd = [rank for rank in range(world.size) if not torch.equal(found[rank], expected[rank])]
    if odd:
        raise RendezvousError(
            f"gloo has connected rank {world.rank} with a foreign process instead of rank {odd[0]}: another "
            "program in this network interferes with the run (docs/cluster/security.md)"
        )


@contextmanager
def _exported(world: World) -> Iterator[None]:
    """Set the environment variables that describe the world to libraries; restore them at the end."""
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
