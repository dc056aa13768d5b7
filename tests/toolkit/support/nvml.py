"""A stand-in for NVIDIA's management library, which no machine without a GPU can answer for."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

from toolkit.system.idle_gpus import Gpu


def gpu(index: int, memory: int = 0, load: int = 0, name: str = "H100") -> Gpu:
    return Gpu(index=index, uuid=f"GPU-{index}abc", name=name, memory_used_mb=memory, utilisation=load)


class NVMLError(Exception):
    """As the library's own."""


class NVMLError_NotSupported(NVMLError):
    """A query that this device does not answer."""


@dataclass
class Library(ModuleType):
    """A stand-in for pynvml on a machine with these GPUs."""

    machine: list[Gpu] = field(default_factory=list)
    fault: str = ""
    open: int = 0
    NVMLError = NVMLError
    NVMLError_NotSupported = NVMLError_NotSupported

    def __post_init__(self) -> None:
        ModuleType.__init__(self, "pynvml")

    def nvmlInit(self) -> None:
        if self.fault:
            raise NVMLError(self.fault)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.machine)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Gpu:
        return self.machine[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Gpu:
        """Of a GPU, or of a part of one: MIG-3 is one of GPU 0."""
        wanted = self.machine[0].uuid if uuid.startswith("MIG-") else uuid
        return next(gpu for gpu in self.machine if gpu.uuid == wanted)

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: Gpu) -> Gpu:
        return handle

    def nvmlDeviceGetUUID(self, handle: Gpu) -> str:
        return handle.uuid

    def nvmlDeviceGetName(self, handle: Gpu) -> str:
        return handle.name

    def nvmlDeviceGetMemoryInfo(self, handle: Gpu) -> Any:
        if handle.memory_used_mb < 0:
            raise NVMLError_NotSupported("Not Supported")
        if handle.name == "lost":
            raise NVMLError("GPU is lost")
        return SimpleNamespace(used=handle.memory_used_mb << 20, total=16384 << 20)

    def nvmlDeviceGetUtilizationRates(self, handle: Gpu) -> Any:
        if handle.utilisation < 0:
            raise NVMLError_NotSupported("Not Supported")
        return SimpleNamespace(gpu=handle.utilisation)
