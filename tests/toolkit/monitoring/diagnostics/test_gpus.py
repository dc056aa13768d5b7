"""Facts about GPUs from the management library, some of which a GPU may not support."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from toolkit.monitoring.diagnostics.gpus import gpus


class Untold(Exception):
    """The library's error for an unsupported query."""


def untold(*_: object) -> Any:
    raise Untold("not supported")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A fake library with one GPU that supports every query."""
    nvml: Any = ModuleType("pynvml")
    nvml.NVMLError, nvml.NVML_CLOCK_SM, nvml.NVML_TEMPERATURE_GPU = Untold, 1, 0
    nvml.nvmlInit = nvml.nvmlShutdown = lambda: None
    nvml.nvmlSystemGetDriverVersion = lambda: "570.1"
    nvml.nvmlSystemGetCudaDriverVersion = lambda: 12080
    nvml.nvmlDeviceGetCount = lambda: 1
    nvml.nvmlDeviceGetHandleByIndex = lambda index: index
    nvml.nvmlDeviceGetName = lambda gpu: "H100"
    nvml.nvmlDeviceGetUUID = lambda gpu: "GPU-1"
    nvml.nvmlDeviceGetMemoryInfo = lambda gpu: SimpleNamespace(total=80 << 30, used=8 << 30)
    nvml.nvmlDeviceGetUtilizationRates = lambda gpu: SimpleNamespace(gpu=35)
    nvml.nvmlDeviceGetCurrentClocksThrottleReasons = lambda gpu: 0x1 | 0x4 | 0x40
    nvml.nvmlDeviceGetComputeMode = lambda gpu: 3
    nvml.nvmlDeviceGetClockInfo = lambda gpu, kind: 1200
    nvml.nvmlDeviceGetMaxClockInfo = lambda gpu, kind: 1980
    nvml.nvmlDeviceGetTemperature = lambda gpu, kind: 60
    nvml.nvmlDeviceGetMigMode = lambda gpu: [0, 0]
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    return nvml


def test_gpu_facts_include_name_memory_and_throttle_reasons(library: ModuleType) -> None:
    facts = gpus()
    (gpu,) = facts["gpus"]
    assert (facts["driver"], facts["cuda"]) == ("570.1", "12.8")
    assert (gpu["name"], gpu["memory_mb"], gpu["memory_used_mb"]) == ("H100", 80 << 10, 8 << 10)
    assert gpu["slowed_by"] == ["power cap", "heat (hardware)"]
    assert gpu["compute_mode"] == "exclusive process"
    assert (gpu["utilization"], gpu["is_cut"]) == (35, False)


def test_unsupported_gpu_queries_are_none(library: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UtilizationRates", "CurrentClocksThrottleReasons", "ComputeMode", "MigMode", "MemoryInfo"):
        monkeypatch.setattr(library, f"nvmlDeviceGet{name}", untold)
    (gpu,) = gpus()["gpus"]
    assert (gpu["utilization"], gpu["compute_mode"], gpu["memory_mb"]) == (None, None, None)
    assert (gpu["slowed_by"], gpu["is_cut"]) == ([], False)


def test_a_missing_driver_is_reported_with_its_error(
    library: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "nvmlInit", untold)
    facts = gpus()
    assert (facts["driver"], facts["gpus"]) == (None, [])
    assert "not supported" in facts["why"]
