"""After a stop rank 0 asks Slurm why, writes it down, and sees that the run goes on where it should."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from slurm.client import programs
from slurm.client.stop_reason import WARNING
from slurm.job import requeue
from slurm.job.requeue import requeue_or_chain
from slurm.job.stop_signals import JobStop
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.pretend_job import PARTITIONS, PretendJob, at
from tests.slurm.support.stubs import Stubs
from tests.slurm.support.user import User
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
def job(fake: FakeSlurm, user: User) -> PretendJob:
    job = PretendJob(fake, user)
    job.stops()
    return job


def stop(job: PretendJob, reason: str | None = "SIGTERM", patience_s: float = 0.0) -> None:
    requeue_or_chain(job.run, job.environ, Stopped(reason), patience_s)


def test_preempted_job_records_the_signals_that_rank_0_has_seen_and_requeues_itself(job: PretendJob) -> None:
    job.is_preempted()
    stop(job)
    assert (job.requeues, job.submitted) == ([["requeue", "101"]], ["101"])
    seen, requeue = job.events("signal", "requeue")
    assert (seen["job_id"], seen["reason"], seen["signals"]) == ("101", "SIGTERM", [["SIGTERM", 1.5]])
    assert (requeue["why"], requeue["by"], job.why) == ("preempted", "stk", "preempted")


def test_cancelled_job_is_not_requeued(job: PretendJob) -> None:
    job.is_cancelled()
    stop(job)
    assert (job.requeues, job.submitted) == ([], ["101"])
    assert (job.outcome, job.why) == ("cancelled", "cancelled")


def test_job_requeued_by_slurm_is_left_alone(job: PretendJob) -> None:
    """Without grace no trace of the preemption is left, but this partition is preemptible."""
    job.fake.answers("--all --oneliner show partition", PARTITIONS.replace("GraceTime=10", "GraceTime=0"))
    job.fake.answers("show config", "PreemptType             = preempt/partition_prio\n")
    job.is_back()
    stop(job)
    assert (job.requeues, job.submitted) == ([], ["101"])
    assert (job.events("requeue")[0]["by"], job.why) == ("slurm", "preempted")


def test_requeue_without_preemption_in_the_partition_counts_as_requested(job: PretendJob) -> None:
    job.fake.answers("--all --oneliner show partition", "PartitionName=main PreemptMode=OFF\n")
    job.is_back()
    stop(job)
    assert job.why == "requested"


@pytest.mark.parametrize(
    "kind, signals, asked_s, why",
    [
        ("partition_prio", [("SIGTERM", 0.0), ("SIGTERM", 0.1)], 0.1, "requested"),
        ("partition_prio", [("SIGTERM", 0.0), ("SIGTERM", 10.5)], 10.5, "preempted"),
        # This process saw no signal.
        ("partition_prio", [], None, "preempted"),
        # The job was suspended earlier, or warned of its time limit.
        ("partition_prio", [("SIGCONT", 0.0), ("SIGCONT", 20.0), ("SIGTERM", 20.0)], 0.0, "requested"),
        ("partition_prio", [(WARNING, 0.0), ("SIGTERM", 20.0)], 0.0, "requested"),
        # The partition's grace is not that of the QOS.
        ("qos", [("SIGTERM", 0.0), ("SIGTERM", 0.1)], 0.1, "preempted"),
    ],
)
def test_requeue_by_a_person_is_no_preemption_in_a_partition_with_grace(
    job: PretendJob, kind: str, signals: list[tuple[str, float]], asked_s: float | None, why: str
) -> None:
    job.fake.answers("show config", f"PreemptType             = preempt/{kind}\n")
    job.is_back()
    stopped = Stopped("SIGTERM")
    stopped.signals = signals
    requeue_or_chain(job.run, job.environ, stopped, 0.0)
    assert job.why == why
    seen = requeue.seen_before(job.run, requeue.Job.around(job.environ))
    assert seen.asked_s == asked_s


def test_grace_can_begin_with_the_warning_of_the_job(job: PretendJob) -> None:
    """With `preempt_send_user_signal`."""
    job.fake.answers("show config", "PreemptType             = preempt/partition_prio\n")
    job.is_back()
    stopped = Stopped(WARNING)
    stopped.signals = [(WARNING, 0.0), ("SIGTERM", 10.5)]
    requeue_or_chain(job.run, job.environ, stopped, 0.0)
    assert job.why == "preempted"


def test_queries_that_only_refine_the_reason_of_a_stop_are_short(
    job: PretendJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that does not answer must not hold a job that may be killed."""
    limits_s: dict[str, float] = {}
    call = programs.call

    def noted(*command: str, timeout_s: float = programs.TIMEOUT_S, **options: Any) -> str:
        limits_s[" ".join(command)] = timeout_s
        return call(*command, timeout_s=timeout_s, **options)

    monkeypatch.setattr(programs, "call", noted)
    job.environ["SLURM_JOB_NODELIST"] = "w1"
    job.is_back()
    stop(job)
    refining = [each for command, each in limits_s.items() if "show job" not in command]
    assert refining == 3 * [requeue._REASON_TIMEOUT_S]


@pytest.mark.parametrize(
    "states, why",
    [
        ("allocated\ndown*\n", "host_lost"),
        # Its administrator was draining it.
        ("allocated\ndrained*\n", "host_lost"),
        ("completing\n", "preempted"),
        ("drained\n", "preempted"),
    ],
)
def test_a_job_that_is_back_because_a_host_is_down_lost_that_host(
    job: PretendJob, stubs: Stubs, states: str, why: str
) -> None:
    stubs.answers("sinfo", states)
    job.environ["SLURM_JOB_NODELIST"] = "w[1-2]"
    job.is_back()
    stop(job)
    assert (job.outcome, job.why, job.requeues) == ("requeue", why, [])
    assert "--nodes=w[1-2]" in stubs.calls("sinfo")[0]


def test_any_component_of_an_uneven_job_can_lose_a_host(job: PretendJob, stubs: Stubs) -> None:
    """Its batch script has the first component in SLURM_JOB_NODELIST."""
    stubs.answers("sinfo", "down*\n")
    first, others = "SLURM_JOB_NODELIST", "SLURM_JOB_NODELIST_HET_GROUP_"
    job.environ |= {first: "w1", f"{others}0": "w1", f"{others}1": "w[2-3]"}
    job.is_back()
    stop(job)
    assert "--nodes=w1,w[2-3]" in stubs.calls("sinfo")[0]


def test_stop_of_a_job_that_is_not_back_does_not_ask_about_its_hosts(job: PretendJob, stubs: Stubs) -> None:
    stubs.answers("sinfo", "down\n")
    job.environ["SLURM_JOB_NODELIST"] = "w1"
    stop(job)
    assert (job.why, stubs.calls("sinfo")) == ("requested", [])


def test_job_submits_the_next_one_before_its_time_limit(job: PretendJob) -> None:
    stop(job, "time_limit")
    assert (job.requeues, job.submitted) == ([], ["101", "102"])
    (event,) = job.events("chained")
    assert (event["job_id"], event["next_job_id"], event["why"]) == ("101", "102", "time_limit")
    assert "#SBATCH --dependency=afterany:101\n" in job.script("102")
    assert job.why == "time_limit"


@pytest.mark.parametrize("reason", [WARNING, None])
def test_warning_signal_near_the_end_means_the_time_limit(job: PretendJob, reason: str | None) -> None:
    """Also if the program exits at the warning, before there is a reason to stop."""
    job.says(StartTime=at(-3600 + 100), EndTime=at(100))
    requeue_or_chain(job.run, job.environ, Stopped(reason, WARNING), 0.0)
    assert (job.why, job.outcome) == ("time_limit", "chained")


@pytest.mark.parametrize("reason", ["SIGUSR2", "SIGTERM", None])
def test_stop_unknown_to_slurm_is_requeued(job: PretendJob, reason: str | None) -> None:
    stop(job, reason)
    assert (job.requeues, job.why) == ([["requeue", "101"]], "requested")


@pytest.mark.parametrize("wanted", ["auto", "chain"])
def test_a_command_that_leaves_by_itself_is_requeued_and_was_not_asked_to(
    fake: FakeSlurm, user: User, wanted: str
) -> None:
    job = PretendJob(fake, user, f"resources.requeue={wanted}")
    job.stops("saved")
    stop(job, None)
    assert (job.requeues, job.why) == ([["requeue", "101"]], "saved")


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
def test_resources_requeue_chooses_between_requeue_and_a_new_job(
    fake: FakeSlurm, user: User, wanted: str, reason: str, is_preempted: bool, expected: str
) -> None:
    job = PretendJob(fake, user, f"resources.requeue={wanted}")
    job.stops()
    if is_preempted:
        job.is_preempted()
    stop(job, reason)
    assert job.outcome == expected


def test_a_job_that_may_not_be_requeued_is_submitted_again(job: PretendJob) -> None:
    job.is_preempted()
    job.fake.refuses_to("requeue 101", DISABLED)
    stop(job)
    assert (job.outcome, job.submitted) == ("chained", ["101", "102"])


def test_a_job_that_may_not_be_submitted_again_is_requeued(job: PretendJob) -> None:
    job.fake.submits("refuse", "sbatch: error: QOSMaxSubmitJobPerUserLimit")
    stop(job, "time_limit")
    assert (job.outcome, job.submitted) == ("requeue", ["101"])
    assert not job.run.intent.exists()


def test_job_whose_successor_cannot_be_written_is_requeued(
    job: PretendJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(requeue, "chain", fails)
    stop(job, "time_limit")
    assert (job.outcome, job.submitted) == ("requeue", ["101"])


def test_refusal_of_both_requeue_and_submission_shows_slurms_words(job: PretendJob) -> None:
    job.fake.submits("refuse", "sbatch: error: QOSMaxSubmitJobPerUserLimit")
    job.fake.refuses_to("requeue 101", DISABLED)
    with pytest.raises(SchedulerError, match="presently disabled") as failure:
        stop(job, "time_limit")
    assert "QOSMaxSubmitJobPerUserLimit" in str(failure.value)
    assert job.outcome == "requeue_failed"
    assert "presently disabled" in job.events("requeue_failed")[0]["reason"]


def test_array_task_is_requeued_alone_and_never_chained(fake: FakeSlurm, user: User) -> None:
    job = PretendJob(fake, user, job_id="101_2")
    job.environ = {"SLURM_JOB_ID": "101", "SLURM_ARRAY_JOB_ID": "101", "SLURM_ARRAY_TASK_ID": "2"}
    job.stops()
    stop(job, "time_limit")
    assert (job.requeues, job.submitted) == ([["requeue", "101_2"]], ["101_2"])


def test_job_not_submitted_by_stk_is_requeued_at_its_time_limit(fake: FakeSlurm, user: User) -> None:
    """There is no plan from which it could be submitted again."""
    job = PretendJob(fake, user)
    job.stops()
    job.run.submissions.unlink()
    job.environ["ENVIRONMENT"] = "BATCH"
    for _ in range(2):
        stop(job, "time_limit")
        assert (job.outcome, job.submitted) == ("requeue", ["101"])
    assert not job.run.intent.exists()


def test_interactive_job_is_not_requeued(job: PretendJob) -> None:
    job.says(BatchFlag="0")
    stop(job, "time_limit")
    assert (job.requeues, job.submitted, job.outcome) == ([], ["101"], "not_requeued")


def test_a_busy_controller_is_asked_again(job: PretendJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurm.client.programs._FIRST_PAUSE_S", 0.0)
    job.is_preempted()
    job.fake.fails_once("scontrol", BUSY)
    stop(job, patience_s=30)
    assert job.outcome == "requeue"


def test_unreachable_controller_is_recorded_as_requeue_failed(job: PretendJob) -> None:
    job.fake.goes_away()
    with pytest.raises(SlurmUnavailable, match="Unable to contact"):
        stop(job)
    assert job.outcome == "requeue_failed"
    assert job.why == "SIGTERM", "attempts.jsonl keeps what the run knew itself"


def test_max_timeouts_is_that_of_the_last_submission(job: PretendJob) -> None:
    job.run.job.write_text("max_timeouts: 0\n")
    job.stops("time_limit", step=5)
    stop(job, "time_limit")
    assert (job.outcome, job.requeues, job.submitted) == ("not_requeued", [], ["101"])


def test_run_is_not_continued_after_max_timeouts(fake: FakeSlurm, user: User) -> None:
    job = PretendJob(fake, user, "resources.max_timeouts=1")
    job.stops("time_limit", step=5)
    job.stops("time_limit", step=9)
    stop(job, "time_limit")
    assert (job.outcome, job.requeues, job.submitted) == ("not_requeued", [], ["101"])
    assert "max_timeouts" in job.events("not_requeued")[0]["reason"]
    job.is_preempted()
    stop(job)
    assert job.outcome == "requeue", "preemptions are not counted"
