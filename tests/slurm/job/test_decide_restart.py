"""What the batch script decides after a step that did not finish its run."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from slurm.client import programs
from slurm.config.resources import Resources
from slurm.job import decide_restart
from slurm.job.decide_restart import _rest_s, decide
from slurm.job.requeue import Job, start_again
from slurm.submission.batch.batch_script import JobPlan
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.pretend_job import PretendJob, at
from tests.slurm.support.user import User
from tests.support.mounts import fill, small_disk
from tests.support.patience import PATIENCE_S
from toolkit.errors import SlurmUnavailable
from toolkit.files import append_json_line, read_json
from toolkit.run.attempts.crash_record import record_crash
from toolkit.run.attempts.records import read_attempts
from toolkit.run.disk_reserve import keep_reserve
from toolkit.run.events import note_event


def hangs_twice(job: PretendJob, host: str = "bad", **facts: Any) -> None:
    """Two attempts end because a rank on one host hung, and the second has just failed."""
    for step in (2, 3):
        facts |= {"last_step": step, "step": step, "host": host, "blamed": host}
        job.starts(time_end=1.0, why="hang", rank=1, **facts)
    job.failure("hang")


# ---- stops


def test_stop_that_was_requeued_needs_no_action(job: PretendJob) -> None:
    job.stops("preempted")
    note_event(job.run, "requeue", job_id="101")
    assert "has been handled" in job.after(75)
    assert job.fake.calls("scontrol") == []


@pytest.mark.parametrize("is_kept", [True, False], ids=["requeue", "chain"])
def test_continued_stop_whose_end_could_not_be_recorded_needs_no_action(
    job: PretendJob, is_kept: bool
) -> None:
    """As on a full disk: attempts.jsonl has no end, although rank 0 let the run go on."""
    job.starts()
    start_again(job.run, Job.around(job.environ), "time_limit", not is_kept, patience_s=0.0)
    before = (job.requeues, job.submitted)
    assert "has been handled" in job.after(75)
    assert (job.requeues, job.submitted) == before
    assert len(job.events("requeue", "chained")) == 1
    assert (job.why, job.run.failure.exists()) == ("time_limit", False)


def test_crash_of_a_requeued_job_is_not_the_stop_of_its_earlier_start(job: PretendJob) -> None:
    """The clock of the host of the earlier start may be ahead."""
    start_again(job.run, Job.around(job.environ), "preempted", False, patience_s=0.0)
    job.environ["SLURM_RESTART_COUNT"] = "1"
    job.says(Restarts="1")
    job.starts(restart=1)
    assert "starting again" in job.after(137)
    assert job.why == "killed"


@pytest.mark.parametrize("has_begun", [True, False], ids=["an attempt", "no attempt"])
def test_crash_in_a_job_that_got_an_earlier_number_is_not_an_earlier_stop(
    job: PretendJob, has_begun: bool
) -> None:
    start_again(job.run, Job.around(job.environ), "preempted", False, patience_s=0.0)
    again = {"cluster": "slurm", "job_id": "101", "host": "", "name": "n", "time": time.time() + 1}
    append_json_line(job.run.submissions, again)
    if has_begun:
        job.starts(time_start=time.time() + 2)
    assert "handled" not in job.after(137)


@pytest.mark.parametrize("code", [75, 143])
def test_stop_whose_requeue_failed_is_requeued_again(job: PretendJob, code: int) -> None:
    """srun may name another rank's end instead of rank 0's."""
    job.stops("SIGTERM")
    note_event(job.run, "requeue_failed", job_id="101", reason="no answer")
    job.is_preempted()
    assert "preempted" in job.after(code)
    assert (job.requeues, job.why) == ([["requeue", "101"]], "preempted")


def test_reason_noted_by_rank_0_decides_the_restart(job: PretendJob) -> None:
    job.stops("SIGTERM")
    note_event(job.run, "signal", job_id="101", reason="time_limit", requested=False, signals=[])
    job.after(75)
    assert job.submitted == ["101", "102"]


def test_recorded_reason_decides_if_rank_0_was_killed_after_its_save(job: PretendJob) -> None:
    job.stops("time_limit")
    job.after(137)
    assert job.submitted == ["101", "102"]


def test_submitted_but_unrecorded_job_is_found_instead_of_submitted_again(job: PretendJob) -> None:
    """Rank 0 was killed between sbatch and its note of it."""
    job.stops("time_limit")
    note_event(job.run, "signal", job_id="101", reason="time_limit", requested=False, signals=[])
    name = f"{job.run.run_id}.1"
    job.fake.add("102", work_dir=str(job.run.path), name=name)
    job.run.intent.write_text(json.dumps({"name": name, "time": 0, "host": "here", "pid": 1}))
    job.after(75)
    assert job.submitted == ["101", "102"]
    assert job.fake.calls("sbatch") == []


# ---- ends for which Slurm is the reason


def test_a_preemption_without_time_to_save_is_no_failure(job: PretendJob) -> None:
    """No host is blamed, no crash is counted, and the step does not start again in a job that must leave."""
    job.starts()
    job.is_preempted()
    outcome = decide(job.run, 137, job.environ, 0.0, in_place=True)
    assert (outcome.again, job.requeues, job.why) == (False, [["requeue", "101"]], "preempted")
    assert not job.run.failure.exists()


@pytest.mark.parametrize("has_begun", [True, False])
@pytest.mark.parametrize("code", [1, 137, 143])
def test_a_step_that_scancel_ended_is_not_started_again(job: PretendJob, code: int, has_begun: bool) -> None:
    """Not even one that died of the signal before it wrote anything: Slurm would put it back if asked."""
    if has_begun:
        job.starts()
    job.is_cancelled()
    job.after(code)
    assert (job.requeues, job.submitted, job.outcome) == ([], ["101"], "cancelled")


def test_step_preempted_before_it_recorded_anything_is_requeued(job: PretendJob) -> None:
    """The signal found the interpreter still starting; the line of an earlier attempt stays what it is."""
    job.starts(why="finished", time_end=1.0, last_step=1, restart=7)
    job.is_preempted()
    job.after(143)
    assert (job.requeues, job.why) == ([["requeue", "101"]], "finished")


def test_job_requeued_by_slurm_is_left_alone(job: PretendJob) -> None:
    job.starts()
    job.is_back()
    job.after(137)
    assert (job.requeues, job.outcome) == ([], "requeue")


# ---- failures


def test_job_with_a_host_to_avoid_is_not_restarted_in_place(job: PretendJob) -> None:
    """After two crashes there."""
    job.starts()
    assert decide(job.run, 137, job.environ, 0.0, in_place=True).again
    job.starts(first_step=3)
    assert not decide(job.run, 137, job.environ, 0.0, in_place=True).again
    assert job.submitted == ["101", "102"]


def test_step_is_not_restarted_in_a_job_that_ends_before_its_next_save(job: PretendJob) -> None:
    """Slurm would kill the job at its time limit, and would not requeue it."""
    job.starts(first_step_s=40.0)
    note_event(job.run, "save", step=3, seconds=300.0)
    job.says(EndTime=at(3600), StartTime=at(0))
    assert decide(job.run, 137, job.environ, 0.0, in_place=True).again
    job.starts(first_step=3)
    job.says(EndTime=at(60 + 600), StartTime=at(-3000))
    assert not decide(job.run, 137, job.environ, 0.0, in_place=True).again
    assert job.submitted == ["101", "102"]


def test_crash_near_the_end_of_a_job_keeps_the_job_if_that_is_asked_for(fake: FakeSlurm, user: User) -> None:
    job = PretendJob(fake, user, "resources.requeue=same_job")
    job.starts(first_step_s=40.0)
    job.says(EndTime=at(60 + 65))
    assert "starting again" in job.after(137)
    assert (job.requeues, job.submitted) == ([["requeue", "101"]], ["101"])


def test_avoided_host_with_a_domain_in_its_name_needs_no_second_new_job(fake: FakeSlurm, user: User) -> None:
    job = PretendJob(fake, user, "resources.exclude=bad")
    job.environ |= {"SLURM_JOB_NODELIST": "good"}
    hangs_twice(job, "bad.org")
    assert decide(job.run, 77, job.environ, 0.0, in_place=True).again


def test_crash_is_recorded_when_the_file_system_answers_again(
    job: PretendJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, faults = record_crash, [OSError(errno.ESTALE, "Stale file handle")]

    def recorded(*args: Any, **facts: Any) -> None:
        if faults:
            raise faults.pop()
        record(*args, **facts)

    monkeypatch.setattr(decide_restart, "record_crash", recorded)
    monkeypatch.setattr(decide_restart, "_REPEAT_S", (0.0,))
    job.starts()
    assert "starting again" in job.after(137)
    assert job.why == "killed"


def test_unanswered_requests_are_repeated_until_the_job_ends() -> None:
    end = time.time() + 7200
    assert 0 < 7200 - _rest_s({"SLURM_JOB_END_TIME": f"{end:.0f}"}) < 600
    assert _rest_s({"SLURM_JOB_END_TIME": "1"}) == _rest_s({}) == 0


def test_step_that_srun_could_not_create_is_started_again(job: PretendJob) -> None:
    """The batch script lets srun report its own errors with this status."""
    assert "SLURM_EXIT_ERROR=200" in str(JobPlan(experiment=job.user.experiment(), run=job.run))
    assert "starting again" in job.after(200)
    assert job.why == "launch"


def test_step_is_restarted_in_place_but_requeued_if_it_then_dies_unrecorded(job: PretendJob) -> None:
    """In place it could die for ever, because no attempt would be counted."""
    job.starts()
    outcome = decide(job.run, 137, job.environ, 0.0, in_place=True)
    assert (outcome.again, job.requeues, job.why) == (True, [], "killed")
    assert not decide(job.run, 137, job.environ, 0.0, in_place=True).again
    assert job.requeues == [["requeue", "101"]]


def test_step_that_slurm_does_not_end_is_not_followed_by_another_one_in_its_job(job: PretendJob) -> None:
    """The new srun would wait for its hosts until the time limit, as after the death of a slurmstepd."""
    job.starts()
    job.fake.has_steps("101.batch", "101.0", "101.7")
    assert not decide(job.run, 137, job.environ, 0.0, in_place=True).again
    assert (job.requeues, job.why) == ([["requeue", "101"]], "killed")


@pytest.mark.parametrize("answers", [[{"0"}], [{"0"}, set()]], ids=["step stays", "step ends"])
def test_job_that_is_cancelled_during_the_wait_for_its_step_is_not_started_again(
    job: PretendJob, monkeypatch: pytest.MonkeyPatch, answers: list[set[str]]
) -> None:
    def listed(*job_ids: str, timeout_s: float) -> set[str]:
        job.is_cancelled()
        return answers.pop(0)

    monkeypatch.setattr(programs, "numbered_steps", listed)
    monkeypatch.setattr(decide_restart, "_STEP_PAUSE_S", 0.0)
    job.starts()
    patience_s = PATIENCE_S * (len(answers) - 1)
    assert not decide(job.run, 137, job.environ, patience_s, in_place=True).again
    assert (job.requeues, job.submitted, job.outcome) == ([], ["101"], "cancelled")


def test_step_that_lives_on_in_a_component_of_a_heterogeneous_job_is_not_followed_by_another_one(
    job: PretendJob,
) -> None:
    job.environ |= {"SLURM_JOB_ID_HET_GROUP_0": "101", "SLURM_JOB_ID_HET_GROUP_1": "102"}
    job.starts()
    job.fake.has_steps("101.batch", "102.0")
    assert not decide(job.run, 137, job.environ, 0.0, in_place=True).again


def test_steps_of_other_tasks_of_an_array_do_not_hinder_a_restart_in_place(job: PretendJob) -> None:
    """One task has the number of the array as the number of its job."""
    job.environ |= {"SLURM_ARRAY_JOB_ID": "101", "SLURM_ARRAY_TASK_ID": "1"}
    job.starts()
    job.fake.has_steps("101_0.0")
    assert decide(job.run, 137, job.environ, 0.0, in_place=True).again


def test_steps_of_the_user_in_the_job_do_not_hinder_a_restart_in_place(job: PretendJob) -> None:
    job.starts()
    job.fake.has_steps("101.7")
    assert decide(job.run, 137, job.environ, 0.0, in_place=True).again


def test_silently_killed_rank_counts_as_a_crash(job: PretendJob) -> None:
    job.starts()
    job.after(137)
    assert (job.requeues, job.why) == ([["requeue", "101"]], "killed")
    failure = read_json(job.run.failure)
    assert failure["class"] == "killed"


@pytest.mark.parametrize("is_told", [True, False])
def test_a_run_on_a_full_disk_is_not_started_again(job: PretendJob, tmp_path: Path, is_told: bool) -> None:
    job.starts()
    kept = shutil.copytree(job.run.path, tmp_path / "kept", symlinks=True)
    with small_disk(job.run.path):
        shutil.copytree(kept, job.run.path, symlinks=True, dirs_exist_ok=True)
        keep_reserve(job.run)
        fill(job.run.path)
        if is_told:
            job.failure("full_disk")
        assert os.strerror(errno.ENOSPC) in job.after(4)
        assert (job.requeues, job.submitted) == ([], ["101"])
        assert read_json(job.run.failure)["class"] == "full_disk"


def test_max_crashes_of_the_last_submission_limits_restarts(job: PretendJob) -> None:
    job.run.job.write_text("max_crashes: 0\n")
    job.starts()
    outcome = decide(job.run, 137, job.environ, 0.0, in_place=True)
    assert "max_crashes" in outcome.text
    assert (outcome.again, job.requeues, job.outcome) == (False, [], "not_requeued")


def test_step_that_could_not_start_is_recorded(job: PretendJob) -> None:
    """Its ranks found no interpreter, for example: there is no line and no failure.json."""
    job.after(127)
    (line,) = read_attempts(job.run)
    assert (line.job_id, line.restart) == ("101", 0)
    assert job.run.failure.exists()


def test_next_job_excludes_a_host_after_two_failures(job: PretendJob) -> None:
    hangs_twice(job)
    job.after(77)
    assert (job.requeues, job.submitted) == ([], ["101", "102"])
    assert "#SBATCH --exclude=bad\n" in job.script("102")
    assert "#SBATCH --dependency=afterany:101\n" in job.script("102")


def test_requeued_task_of_an_array_excludes_a_host_after_two_failures(fake: FakeSlurm, user: User) -> None:
    job = PretendJob(fake, user, job_id="101_2")
    job.environ |= {"SLURM_JOB_ID": "101", "SLURM_ARRAY_JOB_ID": "101", "SLURM_ARRAY_TASK_ID": "2"}
    job.environ["SLURM_JOB_NODELIST"] = "bad"
    job.says(ExcNodeList="other")
    hangs_twice(job, job_id="101")
    job.after(77)
    assert (job.requeues, job.submitted) == ([["requeue", "101_2"]], ["101_2"])
    assert ["update", "jobid=101_2", "excnodelist=other,bad"] in fake.calls("scontrol")
    # On another host, the next crash costs no requeue.
    job.environ["SLURM_RESTART_COUNT"] = "1"
    job.says(Restarts="1")
    job.environ["SLURM_JOB_NODELIST"] = "good"
    job.starts(first_step=3, restart=1, job_id="101")
    assert decide(job.run, 137, job.environ, 0.0, in_place=True).again


def test_host_is_not_excluded_if_too_few_others_are_left(
    job: PretendJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a partition of one host: the job would wait for ever."""

    def reasons(resources: Resources, facts: object) -> list[str]:
        return ["0 hosts are left"] if resources.exclude == "bad" else []

    monkeypatch.setattr(decide_restart, "check_fits", reasons)
    hangs_twice(job)
    job.after(77)
    assert (job.requeues, job.submitted) == ([["requeue", "101"]], ["101"])
    assert [call for call in job.fake.calls("scontrol") if call[0] == "update"] == []
    (event,) = job.events("not_excluded")
    assert (event["hosts"], event["reasons"]) == (["bad"], ["0 hosts are left"])


def test_requeued_job_of_named_hosts_excludes_none(fake: FakeSlurm, user: User) -> None:
    job = PretendJob(fake, user, "resources.hosts={bad: 1}", "resources.requeue=same_job")
    hangs_twice(job)
    job.after(77)
    assert job.requeues == [["requeue", "101"]]
    assert [call for call in fake.calls("scontrol") if call[0] == "update"] == []


def test_excluded_host_needs_no_new_job(fake: FakeSlurm, user: User) -> None:
    job = PretendJob(fake, user, "resources.exclude=bad")
    hangs_twice(job)
    job.after(77)
    assert (job.requeues, job.submitted) == ([["requeue", "101"]], ["101"])


def test_run_without_progress_is_held(job: PretendJob) -> None:
    for _ in range(3):
        job.starts()
        outcome = job.after(137)
        job.job_id = f"{int(job.job_id) + 1}"
        job.environ["SLURM_JOB_ID"] = job.job_id
        job.says()
    assert "no step" in outcome
    assert len(job.requeues) == 2
    assert read_json(job.run.failure)["class"] == "no_progress"


# ---- runs that are no longer this job's


def test_finished_run_needs_no_action(job: PretendJob) -> None:
    job.stops()
    job.run.result.write_text("{}")
    assert "finished" in job.after(143)
    assert job.fake.calls("scontrol") == []


def test_run_taken_over_by_another_attempt_is_left_alone(job: PretendJob) -> None:
    job.starts()
    job.starts(job_id="999")
    assert "another attempt" in job.after(1)
    assert job.requeues == []


def test_run_locked_by_another_attempt_is_left_alone(job: PretendJob) -> None:
    with FileLock(job.run.alive):
        assert "another attempt" in job.after(2)
    assert not job.run.attempts.exists()


# ---- Slurm does not answer


def test_unreachable_controller_is_recorded_as_requeue_failed(job: PretendJob) -> None:
    job.stops()
    job.fake.goes_away()
    with pytest.raises(SlurmUnavailable):
        job.after(75)
    assert job.outcome == "requeue_failed"
