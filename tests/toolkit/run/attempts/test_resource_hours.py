"""GPUs and CPUs that the starts of a run held, and for how many hours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slurm.config.resources import Resources
from toolkit.config.schema import RunPolicy
from toolkit.files import append_json_line
from toolkit.run.attempts.resource_hours import Hours, attempt_usage, total_cpu_hours, total_gpu_hours
from toolkit.run.run_dir import RunDir


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """An hour of four ranks on two hosts, a fifth of it for starting."""
    run = RunDir(tmp_path / "run")
    (run.path / "ranks").mkdir(parents=True)
    line = {"attempt": 1, "nonce": "a-0", "world_size": 4, "device": "cuda", "first_step_after_start_s": 720}
    append_json_line(run.attempts, {**line, "time_start": 0, "time_end": 3600, "last_step": 9})
    return run


def ranks(run: RunDir, *ranks: tuple[str, str, str | None]) -> None:
    for number, (host, device, visible) in enumerate(ranks):
        line = {"rank": number, "host": host, "device": device, "cuda_visible_devices": visible}
        append_json_line(run.ranks("a-0"), line)


def test_gpus_of_all_hosts_are_counted(run: RunDir) -> None:
    ranks(run, *((host, f"cuda:{number}", "0,1") for host in ("a", "b") for number in (0, 1)))
    (start,) = attempt_usage(run, 0, RunPolicy())
    assert (start.gpus, start.gpu_hours) == (4, Hours(allocated=4, useful=pytest.approx(3.2)))
    assert start.gpu_hours.lost == pytest.approx(0.8)


@pytest.mark.parametrize("visible, gpus", [("0", 1), ("1", 2)])
def test_ranks_that_see_the_same_gpu_hold_one(run: RunDir, visible: str, gpus: int) -> None:
    ranks(run, ("a", "cuda:0", "0"), ("a", "cuda:0", visible))
    assert attempt_usage(run, 0, RunPolicy())[0].gpus == gpus


def test_gpus_with_equal_numbers_are_distinguished_by_uuid(run: RunDir) -> None:
    """For example, each rank is in its own control group or container."""
    for rank, gpu in enumerate(("GPU-a", "GPU-b", "GPU-b")):
        line = {"rank": rank, "host": "a", "device": "cuda:0", "cuda_visible_devices": "0", "gpu": gpu}
        append_json_line(run.ranks("a-0"), line)
    assert attempt_usage(run, 0, RunPolicy())[0].gpus == 2


def test_attempts_with_one_nonce_hold_the_gpus_of_their_own_ranks(run: RunDir) -> None:
    """As torchrun starts them; the second one on another host."""
    second = {"attempt": 2, "nonce": "a-0", "time_start": 4000, "time_end": 7600, "last_step": 9}
    append_json_line(run.attempts, second)
    for attempt, host, gpus in ((1, "a", 4), (2, "b", 2)):
        for rank in range(gpus):
            line = {"attempt": attempt, "rank": rank, "host": host, "device": f"cuda:{rank}"}
            append_json_line(run.ranks("a-0"), line)
    assert [each.gpus for each in attempt_usage(run, 0, RunPolicy())] == [4, 2]


def test_data_parallel_process_holds_all_visible_gpus(run: RunDir) -> None:
    ranks(run, ("a", "cuda:0", "0,1,2"))
    assert attempt_usage(run, 0, RunPolicy(), data_parallel=True)[0].gpus == 3


def test_data_parallel_process_holds_all_gpus_of_a_workstation(run: RunDir) -> None:
    line = {"rank": 0, "host": "a", "device": "cuda:0", "cuda_visible_devices": None, "usable_gpus": 4}
    append_json_line(run.ranks("a-0"), line)
    assert attempt_usage(run, 0, RunPolicy(), data_parallel=True)[0].gpus == 4
    assert attempt_usage(run, 0, RunPolicy())[0].gpus == 1


def test_attempt_without_rank_records_holds_one_gpu_for_each_rank(run: RunDir) -> None:
    assert attempt_usage(run, 0, RunPolicy())[0].gpus == 4


@pytest.mark.parametrize(
    "asked, cpus",
    [
        ({"gres": "gpu:2"}, 16),
        ({"gres": "gpu:2", "cpus_per_task": 3}, 12),
        ({"hosts": {"a": 1}}, 16),
        ({}, 4),
    ],
)
def test_attempt_without_a_recorded_device_holds_the_requested_cpus(
    tmp_path: Path, asked: dict[str, Any], cpus: int
) -> None:
    """As of a command: its GPUs are not measured."""
    run = RunDir(tmp_path)
    (run.path / "ranks").mkdir()
    line = {"attempt": 1, "nonce": "a-0", "world_size": 4, "time_start": 0, "time_end": 3600}
    append_json_line(run.attempts, line)
    append_json_line(run.ranks("a-0"), {"rank": 0, "host": "a", "attempt": 1})
    (start,) = attempt_usage(run, 0, Resources(**asked))
    assert (start.gpus, start.cpus) == (0, cpus)


def test_run_on_cpus_holds_no_gpus_and_the_requested_cpus(run: RunDir) -> None:
    ranks(run, ("a", "cpu", None), ("a", "cpu", None))
    starts = attempt_usage(run, 0, Resources(cpus_per_task=2))
    assert total_gpu_hours(starts) == Hours()
    assert total_cpu_hours(starts).allocated == 8
