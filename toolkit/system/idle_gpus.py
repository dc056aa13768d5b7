"""The GPUs of this machine that are least busy, as NVIDIA's management library sees them.

They are chosen among the GPUs in CUDA_VISIBLE_DEVICES, and passed to the ranks by UUID: the library and CUDA
number GPUs in different orders, unless CUDA_DEVICE_ORDER is PCI_BUS_ID.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.errors import UserError

VARIABLE = "CUDA_VISIBLE_DEVICES"
#: From version 2.30 on, NCCL lets several ranks share a GPU if this is 1.
SHARING_VARIABLE = "NCCL_MULTI_RANK_GPU_ENABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as the library sees it.

    index           in the order of the PCI bus
    memory_used_mb  by all processes of the machine; 0 if it is unknown
    utilisation     per cent of the latest sample period in which the GPU was busy; 0 if it is unknown
    """

    index: int
    uuid: str
    name: str
    memory_used_mb: int
    utilisation: int


class NoGpus(UserError):
    """The library is not installed, or finds no driver."""


def least_busy(count: int, gpus: Sequence[Gpu], visible: str | None, order: str | None = None) -> list[Gpu]:
    """Return `count` visible GPUs, the least busy first: by memory used, then by utilisation.

    visible, order: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER. Raises UserError if there are fewer.
    """
    candidates = list(gpus) if visible is None else _visible(gpus, visible, order)
    if count > len(candidates):
        within = "" if visible is None else f" among {VARIABLE}={visible}"
        raise UserError(f"{count} GPUs are wanted, but there are {len(candidates)}{within} on this machine")
    return sorted(candidates, key=lambda gpu: (gpu.memory_used_mb, gpu.utilisation, gpu.index))[:count]


def _visible(gpus: Sequence[Gpu], visible: str, order: str | None) -> list[Gpu]:
    """The GPUs that CUDA would see: those before the first entry that names no GPU."""
    found: list[Gpu] = []
    for entry in (part.strip() for part in visible.split(",")):
        gpu = _named(gpus, entry, order)
        if gpu is None or gpu in found:
            break
        found.append(gpu)
    return found


def _named(gpus: Sequence[Gpu], entry: str, order: str | None) -> Gpu | None:
    if entry.startswith("MIG-"):
        raise UserError(
            f"{VARIABLE} names a part of a GPU, {entry}: --gpus cannot choose parts (leave it out), and "
            "their usage is not measured"
        )
    if entry.startswith("GPU-"):
        matches = [gpu for gpu in gpus if gpu.uuid.startswith(entry)]
        return matches[0] if len(matches) == 1 else None
    if not entry.isdecimal() or int(entry) >= len(gpus):
        return None
    if order != "PCI_BUS_ID" and len({gpu.name for gpu in gpus}) > 1:
        raise UserError(
            f"{VARIABLE} names GPU {entry}, and this machine has GPUs of different kinds: which one is meant "
            "depends on CUDA_DEVICE_ORDER. Set that to PCI_BUS_ID, or name them by UUID (nvidia-smi -L)"
        )
    return next(gpu for gpu in gpus if gpu.index == int(entry))


def read_gpus() -> list[Gpu]:
    """All GPUs of this machine, in the order of the PCI bus. Raises NoGpus."""
    with management_library() as nvml:
        return [_read(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]


@contextmanager
def management_library() -> Iterator[Any]:
    """NVIDIA's management library, initialized. Raises NoGpus, also for its errors in the block."""
    try:
        import pynvml  # from nvidia-ml-py; only needed to query GPUs
    except ImportError:
        raise NoGpus("choosing GPUs needs the package nvidia-ml-py: pip install nvidia-ml-py") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NoGpus(f"no NVIDIA GPU can be chosen on this machine: {error}") from None
    try:
        yield pynvml
    except pynvml.NVMLError as error:
        raise NoGpus(f"the GPUs of this machine cannot be read: {error}") from error
    finally:
        pynvml.nvmlShutdown()


def _read(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    # A GPU that is cut into parts reports neither, and tells the memory only to root; some GPUs have none.
    utilisation = memory_used = 0
    with suppress(nvml.NVMLError):
        utilisation = nvml.nvmlDeviceGetUtilizationRates(handle).gpu
    with suppress(nvml.NVMLError):
        memory_used = nvml.nvmlDeviceGetMemoryInfo(handle).used
    return Gpu(
        index=index,
        uuid=nvml.nvmlDeviceGetUUID(handle),
        name=nvml.nvmlDeviceGetName(handle),
        memory_used_mb=memory_used >> 20,
        utilisation=utilisation,
    )


def count_present(proc: Path = Path("/proc/driver/nvidia/gpus")) -> int:
    """Return the number of GPUs of this machine, whether this process may use them or not.

    Counted by the library or, if that fails, from the files of the kernel module.
    """
    try:
        return len(read_gpus())
    except NoGpus:
        return len(list(proc.glob("*")))


def why_none(torch: Any) -> str:
    """Return the driver's message to torch, which finds no GPU; empty if it gives none."""
    try:
        torch.cuda.init()
    except Exception as error:
        return str(error).partition("\n")[0]
    return ""


def whole_of(part: str) -> str:
    """UUID of the GPU that a part (MIG) belongs to; the part's own if the library does not report it."""
    try:
        with management_library() as nvml:
            handle = nvml.nvmlDeviceGetHandleByUUID(part)
            return str(nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)))
    except NoGpus:
        return part


def choose(count: int, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the least busy GPUs in CUDA_VISIBLE_DEVICES. Raises NoGpus, UserError."""
    chosen = least_busy(count, read_gpus(), environ.get(VARIABLE), environ.get("CUDA_DEVICE_ORDER"))
    return {**environ, VARIABLE: ",".join(gpu.uuid for gpu in chosen)}


def visible_gpus(environ: Mapping[str, str]) -> list[Gpu]:
    """The GPUs that a process in this environment sees, in CUDA's order. Raises NoGpus, UserError.

    UserError means that the order is unknown, or that a part of a GPU (MIG) is named.
    """
    gpus = read_gpus()
    visible = environ.get(VARIABLE, ",".join(str(gpu.index) for gpu in gpus))
    return _visible(gpus, visible, environ.get("CUDA_DEVICE_ORDER"))


def count_visible(environ: Mapping[str, str]) -> int:
    """Return the number of GPUs visible to a process in this environment; 0 if none can be found."""
    visible = environ.get(VARIABLE)
    if visible is not None and visible.startswith("MIG-"):
        # A process uses only one part of a GPU, even if several are named.
        return 1
    try:
        gpus = read_gpus()
    except NoGpus:
        return 0
    # The order does not change the count.
    return len(gpus) if visible is None else len(_visible(gpus, visible, "PCI_BUS_ID"))
