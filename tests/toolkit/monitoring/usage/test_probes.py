"""The usage of a process is measured with its children and on its own GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.toolkit.support.nvml import Library, gpu
from toolkit.monitoring.usage.probes import ProcessProbe, gpu_probe, peak_rss_mb
from toolkit.system.idle_gpus import NoGpus

#: A process of 96 MB that lives until its input ends.
_CHILD = "import sys; block = bytearray(96 << 20); print('ready', flush=True); sys.stdin.read()"


def test_memory_includes_a_child_until_it_ends() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "ready\n"
        probe = ProcessProbe()
        before_mb, _ = probe.read()
        child.communicate()
    after_mb, cpu_percent = probe.read()
    assert after_mb < before_mb - 90
    assert cpu_percent >= 0


def test_work_is_measured_as_cpu_time() -> None:
    probe = ProcessProbe()
    sum(range(3_000_000))
    _, cpu_percent = probe.read()
    assert cpu_percent > 1


def test_peak_memory_is_measured() -> None:
    assert peak_rss_mb() >= psutil.Process().memory_info().rss / 2**20 / 2
    assert peak_rss_mb(Path("/nowhere")) == 0.0


# -- the GPU


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    stand_in = Library([gpu(0, 100, 10), gpu(1, 2048, 90)])
    monkeypatch.setitem(sys.modules, "pynvml", stand_in)
    return stand_in


def test_the_gpu_is_selected_by_cuda_visible_devices(library: Library) -> None:
    with gpu_probe("cuda:0", {"CUDA_VISIBLE_DEVICES": "1"}) as probe:
        assert (probe.name, probe.uuid, probe.read()) == ("H100", "GPU-1abc", (90.0, 2048.0, 16384.0))
        assert library.open == 1
    assert library.open == 0


def test_an_unsupported_gpu_utilization_is_none(library: Library) -> None:
    library.machine = [gpu(0, 100, -1)]
    with gpu_probe("cuda", {}) as probe:
        assert probe.read() == (None, 100.0, 16384.0)


def test_gpu_without_memory_of_its_own_has_none_but_a_lost_gpu_is_an_error(library: Library) -> None:
    library.machine = [gpu(0, -1, 10)]
    with gpu_probe("cuda", {}) as probe:
        assert probe.read() == (10.0, 0.0, 0.0)
    library.machine = [gpu(0, 100, 10, name="lost")]
    with pytest.raises(NoGpus, match="GPU is lost"), gpu_probe("cuda", {}) as probe:
        probe.read()


def test_the_gpu_library_is_not_used_on_the_cpu(library: Library) -> None:
    library.fault = "Driver Not Loaded"
    with gpu_probe("cpu", {}) as probe:
        assert probe is None


@pytest.mark.parametrize("device, visible", [("cuda:3", "0"), ("cuda:0", ""), ("cuda:0", "MIG-1")])
def test_an_unidentifiable_gpu_is_logged_once(
    library: Library, caplog: pytest.LogCaptureFixture, device: str, visible: str
) -> None:
    with gpu_probe(device, {"CUDA_VISIBLE_DEVICES": visible}) as probe:
        assert probe is None
    (record,) = caplog.records
    assert "GPU usage is not measured" in record.getMessage()
