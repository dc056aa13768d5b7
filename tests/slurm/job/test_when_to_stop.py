"""When rank 0 leaves its job: before the end, and on a warning that means more than that."""

from __future__ import annotations

import os
import signal
import time
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.job.stop_signals import JobStop
from slurm.job.when_to_stop import REQUEST_EVENT, JobWatch, margin_s
from tests.slurm.support.fake_slurm import FakeSlurm
from toolkit.files import read_json_lines
from toolkit.run.events import note_event
from toolkit.run.run_dir import RunDir

ENVIRON = {"SLURM_JOB_ID": "12"}
SHOW = "--all show job 12"
PARTITIONS = "PartitionName=main Default=YES PreemptMode=REQUEUE GraceTime=0\n"
#: Slurm's own, and the one that users of other libraries send by scancel.
WARNINGS = (signal.SIGUSR2, signal.SIGUSR1)
CONFIG = "PreemptType = preempt/partition_prio\nKillWait = 5 sec\n"


def local(seconds_from_now: float) -> str:
    """A time as Slurm prints it."""
    return datetime.fromtimestamp(time.time() + seconds_from_now).isoformat(timespec="seconds")


def says(fake: FakeSlurm, *, left_s: float, length_s: float = 3600, **more: str) -> None:
    """From now on Slurm says that the job has so much time left."""
    facts = {
        "JobId": "12",
        "JobState": "RUNNING",
        "Restarts": "0",
        "TimeLimit": "01:00:00",
        "Partition": "main",
        "StartTime": local(left_s - length_s),
        "EndTime": local(left_s),
        "PreemptTime": "None",
    }
    fake.answers(SHOW, " ".join(f"{name}={value}" for name, value in (facts | more).items()))


def watched(run: RunDir) -> JobStop:
    stop = JobStop(is_watched=True).install()
    stop.watch = JobWatch(run, ENVIRON)
    stop.watch.wait()
    return stop


def settled_reason(stop: JobStop, lead_s: float = 0.5) -> str | None:
    """The reason once the controller was asked as often as it takes."""
    for _ in range(3):
        reason = stop.reason_to_stop(lead_s)
        stop.watch.wait()
    return reason


@pytest.mark.usefixtures("handlers")
class TestRank0:
    def test_near_end_of_the_job_is_a_reason(self, fake: FakeSlurm, run: RunDir) -> None:
        says(fake, left_s=1000)
        assert settled_reason(watched(run)) is None
        says(fake, left_s=15)
        assert settled_reason(watched(run)) == "time_limit"

    def test_near_end_depends_on_the_length_of_a_save(self, fake: FakeSlurm, run: RunDir) -> None:
        says(fake, left_s=100)
        assert settled_reason(watched(run), lead_s=5) is None
        assert settled_reason(watched(run), lead_s=45) == "time_limit"

    def test_raised_time_limit_lets_training_continue(self, fake: FakeSlurm, run: RunDir) -> None:
        says(fake, left_s=15)
        stop = watched(run)
        says(fake, left_s=1000)
        assert settled_reason(stop) is None

    def test_known_end_counts_while_no_controller_answers(
        self, fake: FakeSlurm, run: RunDir, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("slurm.job.when_to_stop._PATIENCE_S", 0.0)
        says(fake, left_s=15)
        stop = watched(run)
        fake.goes_away()
        assert settled_reason(stop) == "time_limit"

    def test_end_is_read_from_the_environment_while_no_controller_answers(
        self, fake: FakeSlurm, run: RunDir, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("slurm.job.when_to_stop._PATIENCE_S", 0.0)
        fake.goes_away()
        stop = JobStop(is_watched=True).install()
        stop.watch = JobWatch(run, {**ENVIRON, "SLURM_JOB_END_TIME": str(int(time.time()) + 10)})
        assert settled_reason(stop) == "time_limit"

    def test_a_job_without_a_limit_has_no_end(self, fake: FakeSlurm, run: RunDir) -> None:
        says(fake, left_s=0, EndTime="Unknown", TimeLimit="UNLIMITED")
        assert settled_reason(watched(run)) is None

    def test_training_never_waits_for_the_controller(
        self, fake: FakeSlurm, run: RunDir, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each step asks the watch; only its thread asks Slurm, and only where something may have changed."""
        says(fake, left_s=1000)
        stop = watched(run)
        asked = len(fake.calls("scontrol"))
        monkeypatch.setattr("slurm.client.programs.call", pytest.fail)
        assert [stop.reason_to_stop(0.1) for _ in range(1000)] == [None] * 1000
        assert len(fake.calls("scontrol")) == asked

    def test_warning_of_a_known_end_is_not_yet_a_reason(self, fake: FakeSlurm, run: RunDir) -> None:
        says(fake, left_s=150)
        stop = watched(run)
        os.kill(os.getpid(), signal.SIGUSR2)
        assert settled_reason(stop) is None

    @pytest.mark.parametrize("number", WARNINGS)
    def test_warning_signal_far_from_the_end_is_a_reason(
        self, fake: FakeSlurm, run: RunDir, number: signal.Signals
    ) -> None:
        says(fake, left_s=1000)
        stop = watched(run)
        os.kill(os.getpid(), number)
        assert settled_reason(stop) == "SIGUSR2"

    def test_warning_signal_in_a_preemption_is_a_reason_near_the_end(
        self, fake: FakeSlurm, run: RunDir
    ) -> None:
        says(fake, left_s=1000)
        stop = watched(run)
        says(fake, left_s=150, PreemptTime=local(0))
        os.kill(os.getpid(), signal.SIGUSR2)
        assert settled_reason(stop) == "SIGUSR2"

    def test_signal_of_stk_requeue_is_a_reason_near_the_end(self, fake: FakeSlurm, run: RunDir) -> None:
        note_event(run, REQUEST_EVENT, job_id="11")  # of an earlier attempt
        says(fake, left_s=150)
        stop = watched(run)
        note_event(run, REQUEST_EVENT, job_id="12")
        os.kill(os.getpid(), signal.SIGUSR2)
        assert settled_reason(stop) == "SIGUSR2"

    def test_stk_requeue_after_the_warning_is_a_reason(self, fake: FakeSlurm, run: RunDir) -> None:
        says(fake, left_s=150)
        stop = watched(run)
        os.kill(os.getpid(), signal.SIGUSR2)
        assert settled_reason(stop) is None
        note_event(run, REQUEST_EVENT, job_id="12")
        os.kill(os.getpid(), signal.SIGUSR2)
        assert settled_reason(stop) == "SIGUSR2"

    def test_warning_signal_is_a_reason_while_no_controller_answers(
        self, fake: FakeSlurm, run: RunDir, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("slurm.job.when_to_stop._PATIENCE_S", 0.0)
        says(fake, left_s=1000)
        stop = watched(run)
        fake.goes_away()
        os.kill(os.getpid(), signal.SIGUSR2)
        assert settled_reason(stop) == "SIGUSR2"

    def test_save_longer_than_its_time_budget_is_reported_once(
        self, fake: FakeSlurm, run: RunDir, caplog: pytest.LogCaptureFixture
    ) -> None:
        fake.answers("--all --oneliner show partition", PARTITIONS)
        fake.answers("show config", CONFIG)
        says(fake, left_s=100_000, length_s=100_000)
        stop = watched(run)
        # What was not measured is no fact to tell.
        assert stop.reason_to_stop(9.0, is_measured=False) is None
        assert [stop.reason_to_stop(lead_s) for lead_s in (0.1, 2.9, 4.0, 4.0)] == [None] * 4
        (event,) = [line for line in read_json_lines(run.events) if line["event"] == "budget_too_short"]
        assert event["lead_s"] == 4.0
        (reason,) = event["reasons"]
        assert "4.0 s" in reason
        assert "GraceTime 0 s, KillWait 5 s" in reason
        assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [reason]


@given(st.floats(0, 1e4), st.floats(60, 1e6) | st.none())
def test_even_a_short_job_trains_for_half_of_its_time(lead_s: float, length_s: float | None) -> None:
    margin = margin_s(lead_s, length_s)
    assert margin >= (min(lead_s, length_s / 2) if length_s else lead_s)
    if length_s is not None:
        assert margin <= length_s / 2


def test_margin_is_7_s_of_a_minute_and_24_s_of_an_hour() -> None:
    assert margin_s(0.5, 60) == 7
    assert margin_s(2, 3600) == 24
