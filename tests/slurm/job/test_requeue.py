"""After a stop rank 0 asks Slurm why, writes it down, and sees that the run goes on where it should."""

from __future__ import annotations

import pytest

from slurm.client.stop_reason import WARNING
from slurm.job.requeue import requeue_or_chain
from slurm.job.stop_signals import JobStop
from tests.slurm.fake_slurm import FakeSlurm
from tests.slurm.house import House
from tests.slurm.stage import Stage, at
from toolkit.errors import SchedulerError, SlurmUnavailable

BUSY = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
DISABLED = "Requested operation is presently disabled for job 101"


class Stopped(JobStop):
    """As if a signal had come."""

    def __init__(self, reason: str | None, signal: str | None = None) -> None:
        super().__init__()
        self._reason = reason
        self.signals = [(name, 1.5) for name in (signal or reason,) if name]


@pytest.fixture
def stage(fake: FakeSlurm, house: House) -> Stage:
    stage = Stage(fake, house)
    stage.stops()
    return stage


def stop(stage: Stage, reason: str | None = "SIGTERM", patience_s: float = 0.0) -> None:
    requeue_or_chain(stage.run, stage.environ, Stopped(reason), patience_s)


def test_a_preempted_job_asks_for_its_place_back(stage: Stage) -> None:
    stage.is_preempted()
    stop(stage)
    assert (stage.requeues, stage.submitted) == ([["requeue", "101"]], ["101"])
    (event,) = stage.events("requeue")
    assert (event["why"], event["by"], stage.why) == ("preempted", "stk", "preempted")


def test_what_rank_0_saw_is_written_down(stage: Stage) -> None:
    stage.is_preempted()
    stop(stage)
    (event,) = stage.events("signal")
    assert (event["job_id"], event["reason"], event["signals"]) == ("101", "SIGTERM", [["SIGTERM", 1.5]])


def test_a_cancelled_job_stays_away(stage: Stage) -> None:
    stage.is_cancelled()
    stop(stage)
    assert (stage.requeues, stage.submitted) == ([], ["101"])
    assert (stage.outcome, stage.why) == ("cancelled", "cancelled")


def test_a_job_that_slurm_has_put_back_is_left_alone(stage: Stage) -> None:
    """Without grace no trace of the preemption is left, but in this partition it is what happens."""
    stage.is_back()
    stop(stage)
    assert (stage.requeues, stage.submitted) == ([], ["101"])
    assert (stage.events("requeue")[0]["by"], stage.why) == ("slurm", "preempted")


def test_where_nothing_preempts_somebody_else_put_it_back(stage: Stage) -> None:
    stage.fake.answers("--all --oneliner show partition", "PartitionName=main PreemptMode=OFF\n")
    stage.is_back()
    stop(stage)
    assert stage.why == "requested"


def test_asking_again_for_ones_place_is_no_fault(stage: Stage) -> None:
    stage.is_preempted()
    stage.fake.refuses_to("requeue 101", "Job is pending execution for job 101")
    stop(stage)
    assert stage.outcome == "requeue"


def test_a_program_that_left_at_the_warning_itself_has_left_before_the_time_limit(stage: Stage) -> None:
    stage.says(StartTime=at(-100), EndTime=at(40))
    requeue_or_chain(stage.run, stage.environ, Stopped(None, WARNING), 0.0)
    assert (stage.why, stage.outcome) == ("time_limit", "chained")


def test_before_its_time_limit_a_job_submits_the_next_one(stage: Stage) -> None:
    stop(stage, "time_limit")
    assert (stage.requeues, stage.submitted) == ([], ["101", "102"])
    (event,) = stage.events("chained")
    assert (event["job_id"], event["next_job_id"], event["why"]) == ("101", "102", "time_limit")
    assert "#SBATCH --dependency=afterany:101\n" in stage.script("102")
    assert stage.why == "time_limit"


def test_slurms_warning_near_the_end_means_the_same(stage: Stage) -> None:
    stage.says(StartTime=at(-3600 + 100), EndTime=at(100))
    stop(stage, "SIGUSR2")
    assert (stage.why, stage.outcome) == ("time_limit", "chained")


@pytest.mark.parametrize("reason", ["SIGUSR2", "SIGTERM", None])
def test_a_stop_that_slurm_knows_nothing_of_goes_back_into_the_queue(
    stage: Stage, reason: str | None
) -> None:
    stop(stage, reason)
    assert (stage.requeues, stage.why) == ([["requeue", "101"]], "requested")


@pytest.mark.parametrize(
    "wanted, reason, is_preempted, expected",
    [
        ("auto", "time_limit", False, "chained"),
        ("chain", "time_limit", False, "chained"),
        ("same_job", "time_limit", False, "requeue"),
        # Slurm itself may put a preempted job back, and then there were two.
        ("chain", "SIGTERM", True, "requeue"),
        ("chain", "SIGUSR2", False, "requeue"),
    ],
)
def test_resources_requeue_chooses(
    fake: FakeSlurm, house: House, wanted: str, reason: str, is_preempted: bool, expected: str
) -> None:
    stage = Stage(fake, house, f"resources.requeue={wanted}")
    stage.stops()
    if is_preempted:
        stage.is_preempted()
    stop(stage, reason)
    assert stage.outcome == expected


def test_a_job_that_may_not_be_requeued_is_submitted_again(stage: Stage) -> None:
    stage.is_preempted()
    stage.fake.refuses_to("requeue 101", DISABLED)
    stop(stage)
    assert (stage.outcome, stage.submitted) == ("chained", ["101", "102"])


def test_a_job_that_may_not_be_submitted_again_is_requeued(stage: Stage) -> None:
    stage.fake.submits("refuse", "sbatch: error: QOSMaxSubmitJobPerUserLimit")
    stop(stage, "time_limit")
    assert (stage.outcome, stage.submitted) == ("requeue", ["101"])
    assert not stage.run.intent.exists()


def test_where_both_are_refused_it_says_so_with_slurms_words(stage: Stage) -> None:
    stage.fake.submits("refuse", "sbatch: error: QOSMaxSubmitJobPerUserLimit")
    stage.fake.refuses_to("requeue 101", DISABLED)
    with pytest.raises(SchedulerError, match="presently disabled") as failure:
        stop(stage, "time_limit")
    assert "QOSMaxSubmitJobPerUserLimit" in str(failure.value)
    assert stage.outcome == "requeue_failed"
    assert "presently disabled" in stage.events("requeue_failed")[0]["reason"]


def test_one_task_of_an_array_goes_back_alone_and_is_never_chained(fake: FakeSlurm, house: House) -> None:
    stage = Stage(fake, house, job_id="101_2")
    stage.environ = {"SLURM_JOB_ID": "101", "SLURM_ARRAY_JOB_ID": "101", "SLURM_ARRAY_TASK_ID": "2"}
    stage.stops()
    stop(stage, "time_limit")
    assert (stage.requeues, stage.submitted) == ([["requeue", "101_2"]], ["101_2"])


def test_a_script_of_somebodys_own_is_requeued_at_its_time_limit(fake: FakeSlurm, house: House) -> None:
    """There is no plan to make it anew from."""
    stage = Stage(fake, house)
    stage.stops()
    stage.run.submissions.unlink()
    stop(stage, "time_limit")
    assert (stage.outcome, stage.submitted) == ("requeue", [])


def test_an_interactive_job_has_no_queue_to_go_back_to(stage: Stage) -> None:
    stage.says(BatchFlag="0")
    stop(stage, "time_limit")
    assert (stage.requeues, stage.submitted, stage.outcome) == ([], ["101"], "not_requeued")


def test_a_busy_controller_is_asked_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurm.client.programs._FIRST_PAUSE_S", 0.0)
    stage.is_preempted()
    stage.fake.fails_once("scontrol", BUSY)
    stop(stage, patience_s=30)
    assert stage.outcome == "requeue"


def test_a_controller_that_does_not_answer_is_written_down(stage: Stage) -> None:
    stage.fake.goes_away()
    with pytest.raises(SlurmUnavailable, match="Unable to contact"):
        stop(stage)
    assert stage.outcome == "requeue_failed"
    assert stage.why == "SIGTERM", "the ledger keeps what the run knew itself"


def test_time_limits_are_counted_by_the_last_submission(stage: Stage) -> None:
    stage.run.job.write_text("max_timeouts: 0\n")
    stage.stops("time_limit", step=5)
    stop(stage, "time_limit")
    assert (stage.outcome, stage.requeues, stage.submitted) == ("not_requeued", [], ["101"])


def test_after_too_many_time_limits_the_run_stays_with_its_user(fake: FakeSlurm, house: House) -> None:
    stage = Stage(fake, house, "resources.max_timeouts=1")
    stage.stops("time_limit", step=5)
    stage.stops("time_limit", step=9)
    stop(stage, "time_limit")
    assert (stage.outcome, stage.requeues, stage.submitted) == ("not_requeued", [], ["101"])
    assert "max_timeouts" in stage.events("not_requeued")[0]["reason"]
    stage.is_preempted()
    stop(stage)
    assert stage.outcome == "requeue", "preemptions are not counted"
