"""Facts about this machine's GPUs from NVIDIA's management library, without torch or using a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.system.idle_gpus import NoGpus, management_library

_MB = 1 << 20
#: Bits of the reasons for reduced clocks (nvml.h), without those of an idle GPU and of settings.
_SLOWED_BY = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}
_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}


def gpus() -> dict[str, Any]:
    """The driver and each GPU as JSON; None for what a GPU does not report."""
    try:
        with management_library() as nvml:
            cuda = nvml.nvmlSystemGetCudaDriverVersion()
            return {
                "driver": nvml.nvmlSystemGetDriverVersion(),
                "cuda": f"{cuda // 1000}.{cuda % 1000 // 10}",
                "gpus": [_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount())],
            }
    except NoGpus as error:
        return {"driver": None, "cuda": None, "gpus": [], "why": str(error)}


def _gpu(nvml: Any, index: int) -> dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def ask(read: Callable[..., Any], *arguments: Any) -> Any:
        """Return the library's answer; None if it refuses for this GPU or this user."""
        try:
            return read(handle, *arguments)
        except nvml.NVMLError:
            return None

    memory = ask(nvml.nvmlDeviceGetMemoryInfo)
    rates = ask(nvml.nvmlDeviceGetUtilizationRates)
    slowed = ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons) or 0
    mig = ask(nvml.nvmlDeviceGetMigMode)
    return {
        "index": index,
        "name": ask(nvml.nvmlDeviceGetName),
        "uuid": ask(nvml.nvmlDeviceGetUUID),
        "memory_mb": memory.total // _MB if memory else None,
        "memory_used_mb": memory.used // _MB if memory else None,
        "utilization": rates.gpu if rates else None,
        "compute_mode": _COMPUTE_MODES.get(ask(nvml.nvmlDeviceGetComputeMode)),
        "clock_mhz": ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
        "clock_max_mhz": ask(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_SM),
        "temperature_c": ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
        "slowed_by": [why for bit, why in _SLOWED_BY.items() if slowed & bit],
        "is_cut": bool(mig and mig[0]),
    }
