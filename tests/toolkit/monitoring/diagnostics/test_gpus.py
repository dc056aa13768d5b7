"""Facts about GPUs from the management library, some of which a GPU may not support."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.toolkit.support.nvml import Library, NVMLError, gpu
from toolkit.monitoring.diagnostics.gpus import gpus


def untold(*_: object) -> Any:
    raise NVMLError("not supported")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """With one GPU that supports every query."""
    nvml: Any = Library([gpu(0, 8 << 10, 35)])
    nvml.NVML_CLOCK_SM, nvml.NVML_TEMPERATURE_GPU = 1, 0
    nvml.nvmlSystemGetDriverVersion = lambda: "570.1"
    nvml.nvmlSystemGetCudaDriverVersion = lambda: 12080
    nvml.nvmlDeviceGetCurrentClocksThrottleReasons = lambda gpu: 0x1 | 0x4 | 0x40
    nvml.nvmlDeviceGetComputeMode = lambda gpu: 3
    nvml.nvmlDeviceGetClockInfo = lambda gpu, kind: 1200
    nvml.nvmlDeviceGetMaxClockInfo = lambda gpu, kind: 1980
    nvml.nvmlDeviceGetTemperature = lambda gpu, kind: 60
    nvml.nvmlDeviceGetMigMode = lambda gpu: [0, 0]
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    return nvml


def test_gpu_facts_include_name_memory_and_throttle_reasons(library: Library) -> None:
    facts = gpus()
    (gpu,) = facts["gpus"]
    assert (facts["driver"], facts["cuda"]) == ("570.1", "12.8")
    assert (gpu["name"], gpu["memory_mb"], gpu["memory_used_mb"]) == ("H100", 16 << 10, 8 << 10)
    assert gpu["slowed_by"] == ["power cap", "heat (hardware)"]
    assert gpu["compute_mode"] == "exclusive process"
    assert (gpu["utilization"], gpu["is_cut"]) == (35, False)


def test_unsupported_gpu_queries_are_none(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UtilizationRates", "CurrentClocksThrottleReasons", "ComputeMode", "MigMode", "MemoryInfo"):
        monkeypatch.setattr(library, f"nvmlDeviceGet{name}", untold)
    (gpu,) = gpus()["gpus"]
    assert (gpu["utilization"], gpu["compute_mode"], gpu["memory_mb"]) == (None, None, None)
    assert (gpu["slowed_by"], gpu["is_cut"]) == ([], False)


def test_a_missing_driver_is_reported_with_its_error(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "nvmlInit", untold)
    facts = gpus()
    assert (facts["driver"], facts["gpus"]) == (None, [])
    assert "not supported" in facts["why"]
