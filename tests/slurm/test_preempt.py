"""Why a job was stopped, and whether it goes back into the queue."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm.preempt import JobStop, hand_over, job_target, why_stopped
from tests.slurm.fake_slurm import FakeSlurm
from tests.slurm.house import ROOT
from toolkit.errors import SchedulerError
from toolkit.files import read_json_lines
from toolkit.rundir import RunDir
from toolkit.stop import StopFlag


class Stopped(StopFlag):
    """As if a signal had come."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self._reason = reason


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path)


@pytest.mark.parametrize(
    "preempt_time, reason, why",
    [
        ("2026-01-01T12:00:00", "SIGTERM", "preempted"),
        ("2026-01-01T12:00:00", "SIGUSR2", "preempted"),
        ("2026-01-01T12:00:00", None, "preempted"),
        ("None", "SIGUSR2", "time_limit"),
        ("N/A", "SIGUSR2", "time_limit"),
        ("Unknown", "SIGUSR2", "time_limit"),
        (None, "SIGUSR2", "time_limit"),
        ("None", "SIGTERM", "cancelled"),
        (None, "SIGTERM", "cancelled"),
    ],
)
def test_the_job_and_the_signal_tell_why(preempt_time: str | None, reason: str | None, why: str) -> None:
    facts = {} if preempt_time is None else {"PreemptTime": preempt_time}
    assert why_stopped(facts, reason) == why


@pytest.mark.parametrize(
    "environ, target",
    [
        ({"SLURM_JOB_ID": "12"}, "12"),
        ({"SLURM_JOB_ID": "14", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "3"}, "12_3"),
        ({"SLURM_JOB_ID": "12", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "0"}, "12_0"),
    ],
)
def test_of_an_array_only_the_own_task_is_meant(environ: dict[str, str], target: str) -> None:
    assert job_target(environ) == target


@pytest.mark.parametrize(
    "preempt_time, reason, why",
    [("2026-01-01T12:00:00", "SIGTERM", "preempted"), ("None", "SIGUSR2", "time_limit")],
)
def test_a_job_that_should_go_on_is_put_back_into_the_queue(
    fake: FakeSlurm, run: RunDir, preempt_time: str, reason: str, why: str
) -> None:
    fake.answers("--all show job 12_3", f"JobId=14 ArrayJobId=12\n   PreemptTime={preempt_time}\n")
    environ = {"SLURM_JOB_ID": "14", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "3"}
    hand_over(run, environ, Stopped(reason))
    assert fake.calls("scontrol")[-1] == ["requeue", "12_3"]
    (event,) = read_json_lines(run.events)
    assert (event["event"], event["job_id"], event["why"]) == ("requeue", "12_3", why)


def test_a_cancelled_job_stays_away(fake: FakeSlurm, run: RunDir) -> None:
    fake.answers("--all show job 12", "JobId=12\n   PreemptTime=None\n")
    hand_over(run, {"SLURM_JOB_ID": "12"}, Stopped("SIGTERM"))
    assert not any("requeue" in call for call in fake.calls("scontrol"))
    (event,) = read_json_lines(run.events)
    assert (event["event"], event["why"]) == ("cancelled", "cancelled")


def test_a_controller_that_does_not_answer_is_written_down(fake: FakeSlurm, run: RunDir) -> None:
    fake.goes_away()
    with pytest.raises(SchedulerError, match="Unable to contact"):
        hand_over(run, {"SLURM_JOB_ID": "12"}, Stopped("SIGUSR2"))
    (event,) = read_json_lines(run.events)
    assert event["event"] == "requeue_failed"
    assert "Unable to contact slurm controller" in event["reason"]


@pytest.fixture
def handlers() -> Iterator[None]:
    """The handlers of this process, put back afterwards."""
    numbers = (signal.SIGTERM, signal.SIGUSR2, signal.SIGCONT)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
def test_a_signal_becomes_a_reason_and_nothing_else(number: signal.Signals) -> None:
    stop = JobStop().install()
    os.kill(os.getpid(), signal.SIGCONT)  # Slurm wakes the tasks before each signal
    assert stop.reason() is None
    os.kill(os.getpid(), number)
    assert stop.reason() == number.name
    os.kill(os.getpid(), signal.SIGTERM)
    assert stop.reason() == number.name, "the first reason stands"


def test_a_signal_that_came_too_early_is_not_lost() -> None:
    """A launcher starts its ranks with the signals held back, for importing torch takes seconds."""
    program = (
        "import json, os, signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "from slurm.preempt import JobStop\n"
        "print(json.dumps(JobStop().install().reason()))\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(shown.stdout) == "SIGTERM"
