"""Each rank samples its own usage; an error in the sampling never ends the rank."""

from __future__ import annotations

import itertools
import json
import logging
import sys
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.support.nvml import Library, gpu
from toolkit.monitoring.usage.sampling import History, UsageSampler
from toolkit.monitoring.usage.values import Moment, RankUsage, read_usage
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

WORLD = replace(World.single(), nonce="7.0.0")


def measured(run: RunDir, device: str = "cpu") -> RankUsage:
    """The usage file of a rank that did nothing."""
    with UsageSampler(run, WORLD, device):
        pass
    (usage,) = read_usage(run, "7.0.0")
    return usage


def samplers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "usage"]


def test_even_the_shortest_attempt_has_one_measurement(run: RunDir) -> None:
    usage = measured(run)
    assert (usage.samples, len(usage.history)) == (1, 1)
    assert usage.rss_peak_mb >= usage.rss_mb > 1
    assert 1 <= usage.cpus <= (psutil.cpu_count() or 1)
    assert usage.gpu is None
    assert samplers() == []


def test_the_file_is_updated_while_the_rank_runs(run: RunDir) -> None:
    seen: list[int] = []
    with UsageSampler(run, WORLD, "cpu", period_s=0.001):
        while len(set(seen)) < 3:
            seen += [usage.samples for usage in read_usage(run, "7.0.0")]
    assert seen[0] >= 1
    assert read_usage(run, "7.0.0")[0].samples > seen[0]


def test_the_file_has_the_documented_keys(run: RunDir) -> None:
    measured(run)
    document = json.loads((run.path / "ranks" / "7.0.0.usage_00000.json").read_text())
    assert list(document) == [
        *("time", "nonce", "rank", "host", "device", "samples", "seconds"),
        *("rss_mb", "rss_peak_mb", "cpu_percent", "cpu_percent_mean", "cpus", "memory_limit_mb"),
        *("gpu", "history"),
    ]


def test_the_gpu_of_the_rank_is_measured(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", Library([gpu(0), gpu(1, 2048, 90)]))
    usage = measured(run, "cuda:1")
    assert (usage.gpu.uuid, usage.gpu.utilization_mean) == ("GPU-1abc", 90.0)
    assert usage.gpu.memory_peak_mb == 2048.0
    assert (usage.history[0].gpu_utilization, usage.history[0].gpu_memory_mb) == (90.0, 2048.0)


def test_an_unwritable_folder_does_not_end_the_rank(tmp_path: Path) -> None:
    (tmp_path / "ranks").write_text("a file where a folder belongs")
    with UsageSampler(RunDir(tmp_path), WORLD, "cpu"):
        pass
    assert samplers() == []


def test_a_driver_error_ends_the_sampling_with_a_warning(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Library([gpu(0)])
    monkeypatch.setitem(sys.modules, "pynvml", machine)
    monkeypatch.setattr(machine, "nvmlDeviceGetMemoryInfo", lambda _: 1 / 0)
    caplog.set_level(logging.WARNING)
    with UsageSampler(run, WORLD, "cuda:0", period_s=0.001) as sampler:
        sampler._thread.join(60)
    (record,) = caplog.records
    assert "no longer measured" in record.getMessage()
    assert machine.open == 0


def test_a_hanging_driver_does_not_block_the_rank(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, may_go = threading.Event(), threading.Event()

    def hang(_: object) -> None:
        hangs.set()
        may_go.wait()

    machine = Library([gpu(0)])
    monkeypatch.setitem(sys.modules, "pynvml", machine)
    monkeypatch.setattr(machine, "nvmlDeviceGetUtilizationRates", hang)
    monkeypatch.setattr("toolkit.monitoring.usage.sampling._PATIENCE_S", 0.01)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with UsageSampler(run, WORLD, "cuda:0", period_s=0.001) as sampler:
        assert hangs.wait(60)
    assert sampler._thread.is_alive()
    assert sampler._thread.daemon
    may_go.set()
    sampler._thread.join(60)


# -- the history


def history_of(count: int, longest: int) -> list[float]:
    history = History(longest)
    for second in range(count):
        history.add(Moment(time=float(second), rss_mb=1.0, cpu_percent=1.0))
    return [moment.time for moment in history.moments]


@given(st.integers(1, 3000), st.integers(2, 20))
def test_points_of_a_history_are_few_and_evenly_spaced_over_the_whole_time(count: int, longest: int) -> None:
    times = history_of(count, longest)
    gaps = {later - earlier for earlier, later in itertools.pairwise(times)}
    assert len(times) <= longest
    assert times[0] == 0.0
    assert len(gaps) <= 1
    assert count - 1 - times[-1] < max(gaps, default=1.0)
    assert len(times) == count if count <= longest else len(times) >= longest // 2
