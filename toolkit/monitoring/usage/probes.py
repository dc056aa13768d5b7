"""Current use of a process and its GPU, from psutil and NVIDIA's management library.

A megabyte is 2**20 bytes.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from toolkit.errors import UserError
from toolkit.system import idle_gpus

_MB = 1 << 20
#: Largest share of a core for the search for child processes, which reads every process of the machine.
#: It decides how often the search runs.
_SEARCH_SHARE = 0.001

log = logging.getLogger("toolkit")


class ProcessProbe:
    """Memory and processor time of this process and all its descendants."""

    def __init__(self) -> None:
        self._own = psutil.Process()
        self._children: list[psutil.Process] = []
        self._search_at = -1.0
        self._read_at, self._cpu_s = time.monotonic(), self._spent_s()

    def read(self) -> tuple[float, float]:
        """Memory in MB, and per cent of a core since the last call."""
        self._search()
        now, spent_s = time.monotonic(), self._spent_s()
        passed_s = max(1e-3, now - self._read_at)
        # The time of a process that ended without being waited for is missing.
        percent = 100 * max(0.0, spent_s - self._cpu_s) / passed_s
        self._read_at, self._cpu_s = now, spent_s
        return self._rss() / _MB, percent

    def _search(self) -> None:
        begun = time.monotonic()
        if begun >= self._search_at:
            self._children = self._own.children(recursive=True)
            ended = time.monotonic()
            self._search_at = ended + (ended - begun) / _SEARCH_SHARE

    def _spent_s(self) -> float:
        own = self._own.cpu_times()
        spent_s: float = own.user + own.system + own.children_user + own.children_system
        for child in self._children:
            with suppress(psutil.Error):
                times = child.cpu_times()
                spent_s += times.user + times.system
        return spent_s

    def _rss(self) -> int:
        rss: int = self._own.memory_info().rss
        for child in self._children:
            with suppress(psutil.Error):
                rss += child.memory_info().rss
        return rss


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProbe:
    """One GPU, with its handle in the library."""

    nvml: Any
    handle: Any
    name: str
    uuid: str

    def read(self) -> tuple[float | None, float, float]:
        """Utilisation in per cent, None if the GPU does not report it; used and total memory, MB."""
        try:
            utilization = float(self.nvml.nvmlDeviceGetUtilizationRates(self.handle).gpu)
        except self.nvml.NVMLError:
            utilization = None
        try:
            memory = self.nvml.nvmlDeviceGetMemoryInfo(self.handle)
        except self.nvml.NVMLError_NotSupported:
            # GPUs that share the memory of the host have none of their own.
            return utilization, 0.0, 0.0
        return utilization, memory.used / _MB, memory.total / _MB


@contextmanager
def gpu_probe(device: str, environ: Mapping[str, str] = os.environ) -> Iterator[GpuProbe | None]:
    """The GPU of a device name of torch in this environment; None if it is not a GPU, or cannot be found.

    Raises NoGpus if the library fails later.
    """
    kind, _, index = device.partition(":")
    if kind != "cuda":
        yield None
        return
    try:
        gpu = idle_gpus.visible_gpus(environ)[int(index or 0)]
    except (UserError, IndexError) as error:
        log.warning("GPU usage is not measured: %s", error)
        yield None
        return
    with idle_gpus.management_library() as nvml:
        handle = nvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
        yield GpuProbe(nvml=nvml, handle=handle, name=gpu.name, uuid=gpu.uuid)


def peak_rss_mb(status: Path = Path("/proc/self/status")) -> float:
    """The peak memory of this process alone; 0 if it is unknown."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return 0.0
    found = (int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
    return next(found, 0.0)
