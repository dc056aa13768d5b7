"""Which device each rank computes on.

A launcher may show each rank all GPUs of its host, some of them or one. Before they join, the ranks exchange
which GPUs they can use, and each computes the same assignment: no two ranks on one GPU, which NCCL refuses.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from toolkit.config.sections import with_hint
from toolkit.errors import DeviceError, UserError
from toolkit.system import idle_gpus
from toolkit.system.world import World

_CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostGpus:
    """The GPUs that a process finds on its host before it chooses one.

    usable   GPUs that torch can use
    is_built whether this torch has code for GPUs
    why      the driver's reason if torch can use none
    present  GPUs of the machine, whether this process may use them or not
    granted  GPUs that a scheduler granted on this host; None without a scheduler
    visible  CUDA_VISIBLE_DEVICES
    """

    usable: int
    is_built: bool = True
    why: str = ""
    present: int = 0
    granted: int | None = None
    visible: str | None = None

    @property
    def named(self) -> list[str]:
        """The GPUs that CUDA_VISIBLE_DEVICES names."""
        return [part.strip() for part in (self.visible or "").split(",") if part.strip()]

    @property
    def is_hidden(self) -> bool:
        """Whether CUDA_VISIBLE_DEVICES hides all GPUs on purpose."""
        return self.visible is not None and self.named[:1] in ([], ["-1"], ["NoDevFiles"])

    @property
    def is_broken(self) -> bool:
        """Whether a GPU should be usable: this process may use one, and this torch has code for it."""
        return self.present > 0 and self.is_built and not self.is_hidden and self.granted != 0

    @property
    def parts(self) -> list[str]:
        """The named entries that are parts of a GPU (MIG)."""
        return [name for name in self.named if name.startswith("MIG-")]


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleGpu:
    """One GPU as a rank sees it.

    uuid   its UUID; for a part of a GPU, that of the part
    whole  UUID of the whole GPU: NCCL accepts one rank on it, even if it has parts
    """

    uuid: str
    whole: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDevices:
    """The devices that one rank can use: GPUs in the order of torch; without GPUs, its processor."""

    rank: int
    local_rank: int
    host: str
    processor: str
    gpus: tuple[VisibleGpu, ...] = ()

    @classmethod
    def from_json(cls, known: Mapping[str, Any]) -> RankDevices:
        return cls(**{**known, "gpus": tuple(VisibleGpu(**gpu) for gpu in known["gpus"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The device of one rank.

    gpu       the UUID of its GPU; empty for the CPU
    is_alike  whether all ranks have the same kind of device, so that they round in the same way
    """

    device: torch.device
    gpu: str = ""
    is_alike: bool = True


# -- one rank


def find_devices(
    world: World, wanted: str, environ: Mapping[str, str] = os.environ
) -> tuple[RankDevices, str]:
    """Return the devices that this rank can use, and a warning if GPUs stay unused or were not granted.

    Raises the errors of `check_gpus`.
    """
    gpus: tuple[VisibleGpu, ...] = ()
    warning = ""
    if wanted != "cpu":
        found = _host_gpus(world, environ)
        warning = check_gpus(found, wanted, socket.gethostname())
        gpus = tuple(_visible_gpu(index, found) for index in range(found.usable))
    devices = RankDevices(
        rank=world.rank,
        local_rank=world.local_rank,
        host=socket.gethostname(),
        processor=torch.backends.cpu.get_cpu_capability(),
        gpus=gpus,
    )
    return devices, warning


def check_gpus(found: HostGpus, wanted: str, host: str) -> str:
    """Check that a process that wants a GPU can use one; return a warning, or nothing. Pure.

    Raises DeviceError if the host is at fault, UserError if the user can correct it.
    """
    if len(found.parts) > 1:
        raise UserError(
            f"{idle_gpus.VARIABLE} names {len(found.parts)} parts of GPUs (MIG) for one process on {host}: "
            "CUDA uses only one. Name one part per rank, or use whole GPUs"
        )
    if found.usable:
        if found.granted and not found.parts and found.usable < len(found.named):
            raise DeviceError(
                f"the scheduler granted GPUs {found.visible} on {host}, but torch can use {found.usable} of "
                f"{len(found.named)}: one may have failed (check with nvidia-smi on that host)"
            )
        return _not_granted(found, host)
    if found.granted:
        raise _unusable_grant(found, host)
    lack = _why_no_gpu(found, host)
    if wanted == "cuda":
        kind = DeviceError if found.is_broken else UserError
        raise kind(f"train.device is cuda, but {lack}: ask for GPUs in resources, or set train.device=cpu")
    return f"computing on the CPU: {lack}" if found.present and not found.is_hidden else ""


def _not_granted(found: HostGpus, host: str) -> str:
    """Return a warning if this process can use more GPUs than the scheduler granted; or nothing.

    It is no error: a scheduler that does not manage GPUs grants none, and looks the same.
    """
    if found.granted is None or found.visible is not None or found.usable <= found.granted:
        return ""
    if found.granted:
        cure = "let the scheduler bind each job to its own GPUs"
    else:
        cure = "if the scheduler manages GPUs, request them in resources, or set train.device=cpu"
    return (
        f"torch can use {found.usable} GPUs on {host}, but the scheduler granted {found.granted}, so other "
        f"jobs may use the rest: {cure}"
    )


def _unusable_grant(found: HostGpus, host: str) -> DeviceError | UserError:
    what = f"the scheduler granted {found.granted} GPUs on {host}, but torch can use none"
    if not found.is_built:
        return UserError(
            f"{what}: this torch is built without CUDA. Install a CUDA build, or set train.device=cpu and "
            "ask for no GPUs"
        )
    return DeviceError(f"{what}: {found.why or 'its driver gives no reason'}")


def _why_no_gpu(found: HostGpus, host: str) -> str:
    """Return why this process can use no GPU."""
    if not found.present:
        return f"{host} has no GPU"
    owns = f"{host} has {found.present} GPUs"
    if not found.is_built:
        return f"{owns}, and this torch is built without CUDA"
    if found.granted == 0:
        return f"{owns}, and the job asked for none"
    return f"{owns}, and torch can use none: {found.why or f'{idle_gpus.VARIABLE}={found.visible}'}"


def _host_gpus(world: World, environ: Mapping[str, str]) -> HostGpus:
    usable = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return HostGpus(
        usable=usable,
        is_built=torch.version.cuda is not None or torch.version.hip is not None,
        why="" if usable else idle_gpus.why_none(torch),
        present=usable or idle_gpus.count_present(),
        granted=world.gpus,
        visible=environ.get(idle_gpus.VARIABLE),
    )


def _visible_gpu(index: int, found: HostGpus) -> VisibleGpu:
    known = torch.cuda.get_device_properties(index)
    uuid = f"GPU-{known.uuid}"
    if not found.parts:
        return VisibleGpu(uuid=uuid, whole=uuid, name=known.name)
    # For a part, torch reports its UUID or that of the GPU, depending on the version of the driver.
    return VisibleGpu(uuid=found.parts[0], whole=idle_gpus.whole_of(found.parts[0]), name=known.name)


# -- all ranks


def assign_device(
    ranks: Sequence[RankDevices], rank: int, environ: Mapping[str, str] = os.environ
) -> Assignment:
    """Return the device of one rank, so that no two share a GPU; all ranks compute the same. Pure.

    Raises UserError if only some ranks have GPUs, or if there are more ranks than GPUs.
    """
    without = [each for each in ranks if not each.gpus]
    if without and len(without) < len(ranks):
        raise UserError(
            f"{_listed(without)} can use no GPU, but the other ranks can: give every host of the run GPUs, "
            "leave that host out, or set train.device=cpu"
        )
    if without:
        return Assignment(device=_CPU, is_alike=len({each.processor for each in ranks}) == 1)
    numbers = _numbers(ranks, may_share=environ.get(idle_gpus.SHARING_VARIABLE) == "1")
    taken = [each.gpus[number] for each, number in zip(ranks, numbers, strict=True)]
    return Assignment(
        device=torch.device("cuda", numbers[rank]),
        gpu=taken[rank].uuid,
        is_alike=len({gpu.name for gpu in taken}) == 1,
    )


def _numbers(ranks: Sequence[RankDevices], *, may_share: bool) -> list[int]:
    """Return the index of each rank's GPU among those that it sees, by a bipartite matching."""
    holders: dict[str, int] = {}

    def assign(rank: int, tried: set[str]) -> bool:
        candidates = [gpu.whole for gpu in ranks[rank].gpus if gpu.whole not in tried]
        # Free GPUs first, so that another rank is moved only if necessary.
        for whole in sorted(candidates, key=holders.__contains__):
            tried.add(whole)
            if whole not in holders or assign(holders[whole], tried):
                holders[whole] = rank
                return True
        return False

    without = [each for each in ranks if not assign(each.rank, set())]
    if without and not may_share:
        raise _too_few(ranks, without[0])
    assigned = {rank: whole for whole, rank in holders.items()}
    return [_number(each, assigned.get(each.rank)) for each in ranks]


def _number(devices: RankDevices, whole: str | None) -> int:
    if whole is None:
        return devices.local_rank % len(devices.gpus)
    return next(number for number, gpu in enumerate(devices.gpus) if gpu.whole == whole)


def _too_few(ranks: Sequence[RankDevices], without: RankDevices) -> UserError:
    own = {gpu.whole for gpu in without.gpus}
    rivals = [each for each in ranks if own & {gpu.whole for gpu in each.gpus}]
    shared = {gpu.uuid: gpu for each in rivals for gpu in each.gpus}
    names = ", ".join(f"{gpu.name} {gpu.uuid}" for gpu in shared.values())
    count = len({gpu.whole for gpu in shared.values()})
    return UserError(
        f"{_listed(rivals)} share {names}: NCCL accepts one rank on each GPU, even if it has parts. "
        + with_hint(f"Start {count} on that host, or set train.device=cpu.", "ranks_per_host")
    )


def _listed(ranks: Sequence[RankDevices]) -> str:
    """List ranks by host, for a message."""
    hosts: dict[str, list[str]] = {}
    for each in ranks:
        hosts.setdefault(each.host, []).append(str(each.rank))
    return "; ".join(
        f"rank{'s' if len(numbers) > 1 else ''} {', '.join(numbers)} on {host}"
        for host, numbers in hosts.items()
    )


def choose_device(wanted: str) -> torch.device:
    """Return the device of a single process: its current GPU, in a notebook the one that the user chose.

    Raises the errors of `check_gpus`.
    """
    devices, _ = find_devices(World.single(), wanted)
    return torch.device("cuda", torch.cuda.current_device()) if devices.gpus else _CPU


def make_current(assigned: Assignment) -> Assignment:
    """Make the assigned GPU the current device of this process; return the assignment."""
    if assigned.device.type == "cuda":
        torch.cuda.set_device(assigned.device)
    return assigned
