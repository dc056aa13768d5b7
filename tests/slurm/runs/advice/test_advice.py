"""Advice: what was asked for against what was used, with the bound and the key to change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from slurm.runs.advice.run import advise
from tests.toolkit.report.report_folders import START_S, write_config, write_usage
from toolkit.files import append_json_line, write_json
from toolkit.report.advice import Advice
from toolkit.report.run.document import run_document
from toolkit.report.run.summary import summarize
from toolkit.run.run_dir import RunDir

START: dict[str, Any] = {"job_id": "7", "world_size": 2, "device": "cuda"}
ASKED = {"mem": "8G", "cpus_per_task": 1, "gres": "gpu:2", "time": "01:00:00"}


def a_run(path: Path, resources: dict[str, Any] | None = None, **line: Any) -> RunDir:
    """A finished run on two GPUs, that trained for all but a minute of an hour."""
    run = RunDir(path)
    write_config(run)
    run.job.write_text(yaml.safe_dump(ASKED if resources is None else resources))
    append_json_line(
        run.submissions, {"cluster": "slurm", "job_id": "7", "host": "login", "name": "a", "time": START_S}
    )
    usual = START | {"attempt": 1, "nonce": "a", "hosts": ["node01"]}
    usual |= {"time_start": START_S, "time_end": START_S + 3600, "first_step_after_start_s": 60.0}
    usual |= {"first_step": 0, "last_step": 1000, "why": "finished"}
    append_json_line(run.attempts, usual | line)
    write_json(run.result, {"state": "finished", "step": 1000, "epoch": 1.0})
    return run


def busy(run: RunDir, **changes: Any) -> RunDir:
    """Two ranks with half of the memory and most of the CPU that was asked for."""
    write_usage(run, "a", [{"cpu_percent_mean": 80.0, **changes}] * 2)
    return run


def advice_on(run: RunDir) -> dict[str, Advice]:
    return {each.topic: each for each in advise(run, summarize(run))}


def test_run_that_used_its_resources_gets_no_advice(tmp_path: Path) -> None:
    assert advice_on(busy(a_run(tmp_path / "run"))) == {}


def test_run_that_has_not_started_gets_no_advice(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    write_config(run)
    assert advice_on(run) == {}
    titles = [section.title for section in run_document(summarize(run), []).sections]
    assert "Advice" not in titles


def test_exactness_above_a_tenth_of_each_step_gets_advice(tmp_path: Path) -> None:
    assert advice_on(busy(a_run(tmp_path / "little", exact_s=0.001, exact_share=0.09))) == {}
    found = advice_on(busy(a_run(tmp_path / "run", exact_s=0.0041, exact_share=0.62)))["exactness"]
    assert (found.found, found.bound) == ("62 % of each step, 4.1 ms", "10 %")
    assert "train.reduction=fast" in found.change


# ---- memory


@pytest.mark.parametrize(
    "asked, change, bound",
    [
        ({"mem": "64G"}, "resources.mem=5G", "50 % of 64.0 GB"),
        ({"mem_per_cpu": "16G", "cpus_per_task": 2}, "resources.mem_per_cpu=1280M", "50 % of 64.0 GB"),
        ({"mem_per_gpu": "32768"}, "resources.mem_per_gpu=3G", "50 % of 64.0 GB"),
        ({"mem": "4200M"}, "resources.mem=5G", "90 % of 4.1 GB"),
    ],
)
def test_memory_far_above_the_peak_of_a_host_or_close_to_it_gets_advice(
    tmp_path: Path, asked: dict[str, Any], change: str, bound: str
) -> None:
    run = busy(a_run(tmp_path / "run", ASKED | {"mem": None} | asked), cpu_percent_mean=150.0)
    found = advice_on(run)["memory"]
    assert (found.found, found.change, found.bound) == ("4.0 GB at most on node01", change, bound)


def test_memory_limit_of_the_cluster_counts_if_none_was_requested(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run", ASKED | {"mem": None})
    assert "memory" not in advice_on(busy(run, memory_limit_mb=8192.0))
    assert advice_on(busy(run, memory_limit_mb=4200.0))["memory"].change == "resources.mem=5G"


# ---- CPUs and GPUs


def test_idle_cpus_get_advice(tmp_path: Path) -> None:
    run = busy(a_run(tmp_path / "run", ASKED | {"cpus_per_task": 8}), cpu_percent_mean=150.0)
    found = advice_on(run)["CPUs"]
    assert (found.found, found.change) == ("1.5 of 8 CPUs of a rank were busy", "resources.cpus_per_task=2")


def test_single_busy_cpu_of_a_gpu_gets_advice(tmp_path: Path) -> None:
    run = busy(a_run(tmp_path / "run"), cpu_percent_mean=99.0)
    assert advice_on(run)["CPUs"].change == "resources.cpus_per_task=2"


def test_idle_gpu_is_named_by_its_rank(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    gpu = {"name": "A100", "utilization": 1.0, "memory_mb": 1, "memory_peak_mb": 1, "memory_total_mb": 9}
    gpus = [{**gpu, "uuid": f"GPU-{rank}", "utilization_mean": mean} for rank, mean in enumerate((90.0, 4.0))]
    write_usage(run, "a", [{"gpu": each, "cpu_percent_mean": 80.0} for each in gpus])
    found = advice_on(run)["GPUs"]
    assert (found.found, found.bound) == ("the GPU of rank 1 was 4 % busy", "idle below 15 %")


def test_underused_gpus_get_advice(tmp_path: Path) -> None:
    run = busy(a_run(tmp_path / "run"))
    for path in run.usages("a"):
        path.write_text(path.read_text().replace('"utilization_mean": 75.0', '"utilization_mean": 30.0'))
    assert advice_on(run)["GPUs"].found == "GPUs were 30 % busy on average"


def test_unused_gpus_get_advice(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run", device="cpu")
    assert advice_on(run)["GPUs"].change == "train.device=cuda"


def test_gpus_of_a_command_which_are_not_measured_get_no_advice(tmp_path: Path) -> None:
    assert "GPUs" not in advice_on(a_run(tmp_path / "run", device=None))


def test_few_seconds_of_usage_give_no_advice(tmp_path: Path) -> None:
    run = busy(a_run(tmp_path / "run", ASKED | {"cpus_per_task": 8}), seconds=20.0, cpu_percent_mean=1.0)
    assert "CPUs" not in advice_on(run)


# ---- time limit


def test_unused_time_limit_gets_advice_to_shorten_it(tmp_path: Path) -> None:
    found = advice_on(busy(a_run(tmp_path / "run", ASKED | {"time": "1-00:00:00"})))["time limit"]
    assert found.change == "resources.time=01:15:00"
    assert found.found == "the longest attempt took 1 h 00 min, the mean 1 h 00 min"


def test_unfinished_run_gets_no_advice_on_its_time_limit(tmp_path: Path) -> None:
    run = busy(a_run(tmp_path / "run", ASKED | {"time": "1-00:00:00"}))
    run.result.unlink()
    assert "time limit" not in advice_on(run)


def test_long_starting_times_get_advice_to_lengthen_the_time_limit(tmp_path: Path) -> None:
    run = busy(a_run(tmp_path / "run", why="time_limit", first_step_after_start_s=300.0))
    assert advice_on(run)["time limit"].change == "resources.time=02:00:00"


# ---- how it went


def test_slow_start_gets_advice(tmp_path: Path) -> None:
    found = advice_on(busy(a_run(tmp_path / "run", first_step_after_start_s=600.0)))["slow starts"]
    assert found.found == "16.7 %, 10 min on average"


def with_saves(run: RunDir, count: int, stall_s: float) -> RunDir:
    for number in range(count):
        at = START_S + 100 + 3400 * number / count
        append_json_line(run.events, {"time": at, "event": "save", "stall_s": stall_s, "waited_s": 0.0})
    return run


def test_costly_saves_at_a_fixed_interval_get_advice(tmp_path: Path) -> None:
    run = with_saves(busy(a_run(tmp_path / "run")), 60, 5.0)
    assert advice_on(run)["saves"].change == "STK_EXPERIMENT_DIR on a faster file system"
    run.config.write_text(run.config.read_text() + "checkpoint:\n  every_steps: 10\n  every_minutes: null\n")
    found = advice_on(run)["saves"]
    assert (found.found, found.change) == ("8.3 % for 60 saves", "checkpoint.every_steps=null")


def test_lost_steps_get_advice(tmp_path: Path) -> None:
    run = with_saves(busy(a_run(tmp_path / "run", why="requeued")), 3, 0.1)
    second = START | {"attempt": 2, "nonce": "b", "restart": 1}
    second |= {"time_start": START_S + 3700, "time_end": START_S + 7300, "first_step_after_start_s": 60.0}
    append_json_line(run.attempts, second | {"first_step": 700, "last_step": 2000, "why": "finished"})
    found = advice_on(run)["lost steps"]
    assert found.change == "checkpoint.every_minutes=20"
    assert found.found.startswith("14.7 % was training")


def test_run_that_waited_longer_than_it_ran_gets_advice(tmp_path: Path) -> None:
    run = busy(a_run(tmp_path / "run"))
    run.submissions.write_text(run.submissions.read_text().replace(str(START_S), str(START_S - 9000)))
    assert advice_on(run)["queue"].found == "it waited 2 h 30 min"


def test_many_attempts_with_poor_goodput_get_advice(tmp_path: Path) -> None:
    run = busy(a_run(tmp_path / "run"))
    for number in (2, 3):
        begin = START_S + 4000 * number
        line = START | {"attempt": number, "restart": number}
        line |= {"time_start": begin, "time_end": begin + 900, "first_step_after_start_s": 700.0}
        append_json_line(run.attempts, {**line, "first_step": 1000, "last_step": 1000})
    found = advice_on(run)
    assert found["restarts"].found == "goodput 73.0 % in 3 attempts"
    assert found["slow starts"].found == "27.0 %, 8 min 07 s on average"


# ---- what cannot be known


@pytest.mark.parametrize("submissions", ["", '{"cluster": "slurm"}\n'], ids=["local", "incomplete"])
def test_run_without_a_known_submission_gets_no_advice(tmp_path: Path, submissions: str) -> None:
    run = busy(a_run(tmp_path / "run", ASKED | {"mem": "64G", "time": "1-00:00:00"}))
    run.submissions.unlink()
    if submissions:
        run.submissions.write_text(submissions)
    assert advice_on(run) == {}


@pytest.mark.parametrize("damage", ["time: tomorrow\nmem: 64G\n", "mem: [1, 2]\n", "cpus_per_task: many\n"])
def test_unreadable_resources_give_no_advice(tmp_path: Path, damage: str) -> None:
    run = busy(a_run(tmp_path / "run"))
    summary = replace(summarize(run), resources=yaml.safe_load(damage))
    assert advise(run, summary) == []
