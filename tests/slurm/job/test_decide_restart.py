"""What the batch script decides after a step that did not finish its run."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from slurm.job.decide_restart import decide
from tests.mounts import fill, small_disk
from tests.slurm.fake_slurm import FakeSlurm
from tests.slurm.house import CODE, ROOT, House
from tests.slurm.stage import Stage
from tests.toolkit.reliability.notifications.receiver import Receiver, nobody, receiving
from toolkit.errors import SlurmUnavailable
from toolkit.files import read_json
from toolkit.run.attempts.records import read_attempts
from toolkit.run.disk_reserve import keep_reserve
from toolkit.run.events import note_event


@pytest.fixture
def stage(fake: FakeSlurm, house: House) -> Stage:
    return Stage(fake, house)


def after(stage: Stage, code: int) -> str:
    return decide(stage.run, code, stage.environ, 0.0).text


# ---- stops


def test_a_stop_that_was_handed_over_needs_nothing(stage: Stage) -> None:
    stage.stops("preempted")
    note_event(stage.run, "requeue", job_id="101")
    assert "another job" in after(stage, 75)
    assert stage.fake.calls("scontrol") == []


@pytest.mark.parametrize("code", [75, 143])
def test_a_stop_that_could_not_be_handed_over_is_now(stage: Stage, code: int) -> None:
    """srun may name another rank's end instead of rank 0's."""
    stage.stops("SIGTERM")
    note_event(stage.run, "requeue_failed", job_id="101", reason="no answer")
    stage.is_preempted()
    assert "preempted" in after(stage, code)
    assert (stage.requeues, stage.why) == ([["requeue", "101"]], "preempted")


def test_what_rank_0_saw_still_counts_then(stage: Stage) -> None:
    stage.stops("time_limit")
    note_event(stage.run, "signal", job_id="101", reason="time_limit", requested=False, signals=[])
    after(stage, 75)
    assert stage.submitted == ["101", "102"]


def test_the_ledger_speaks_for_a_rank_0_that_was_killed_right_after_its_save(stage: Stage) -> None:
    stage.stops("time_limit")
    after(stage, 137)
    assert stage.submitted == ["101", "102"]


def test_a_job_that_was_submitted_but_not_noted_is_found_instead_of_made_again(stage: Stage) -> None:
    """Rank 0 was killed between sbatch and its note of it."""
    stage.stops("time_limit")
    note_event(stage.run, "signal", job_id="101", reason="time_limit", requested=False, signals=[])
    name = f"{stage.run.run_id}.1"
    stage.fake.add("102", work_dir=str(stage.run.path), name=name)
    stage.run.intent.write_text(json.dumps({"name": name, "time": 0, "host": "here", "pid": 1}))
    after(stage, 75)
    assert stage.submitted == ["101", "102"]
    assert stage.fake.calls("sbatch") == []


def test_a_cancelled_job_stays_away(stage: Stage) -> None:
    stage.stops("SIGTERM")
    stage.is_cancelled()
    after(stage, 75)
    assert (stage.requeues, stage.submitted, stage.why) == ([], ["101"], "cancelled")


# ---- ends for which Slurm is the reason


def test_a_preemption_without_time_to_save_is_no_failure(stage: Stage) -> None:
    """Nobody's host gets a strike for it, and no crash is counted."""
    stage.starts()
    stage.is_preempted()
    after(stage, 137)
    assert (stage.requeues, stage.why) == ([["requeue", "101"]], "preempted")
    assert not stage.run.failure.exists()


@pytest.mark.parametrize("has_begun", [True, False])
@pytest.mark.parametrize("code", [1, 137, 143])
def test_a_step_that_scancel_ended_is_not_started_again(stage: Stage, code: int, has_begun: bool) -> None:
    """Not even one that died of the signal before it wrote anything: Slurm would put it back if asked."""
    if has_begun:
        stage.starts()
    stage.is_cancelled()
    after(stage, code)
    assert (stage.requeues, stage.submitted, stage.outcome) == ([], ["101"], "cancelled")


def test_a_step_that_was_stopped_before_it_could_say_so_goes_back(stage: Stage) -> None:
    """The signal found the interpreter still starting; the line of an earlier start stays what it is."""
    stage.starts(why="finished", time_end=1.0, last_step=1, restart=7)
    stage.is_preempted()
    after(stage, 143)
    assert (stage.requeues, stage.why) == ([["requeue", "101"]], "finished")


def test_a_job_that_slurm_has_put_back_is_left_alone(stage: Stage) -> None:
    stage.starts()
    stage.is_back()
    after(stage, 137)
    assert (stage.requeues, stage.outcome) == ([], "requeue")


# ---- failures


def test_a_failure_of_the_infrastructure_starts_the_job_again(stage: Stage) -> None:
    stage.starts()
    stage.failure("io")
    assert "starting again" in after(stage, 1)
    assert (stage.requeues, stage.why) == ([["requeue", "101"]], "io")


def test_a_script_that_can_is_asked_to_start_the_step_again(stage: Stage) -> None:
    """The job keeps its hosts, so nothing is waited for."""
    stage.starts()
    outcome = decide(stage.run, 137, stage.environ, 0.0, in_place=True)
    assert (outcome.again, stage.requeues, stage.why) == (True, [], "killed")


def test_a_host_that_is_to_be_avoided_is_given_back(stage: Stage) -> None:
    """After two crashes there."""
    stage.starts()
    assert decide(stage.run, 137, stage.environ, 0.0, in_place=True).again
    stage.starts(first_step=3)
    assert not decide(stage.run, 137, stage.environ, 0.0, in_place=True).again
    assert stage.submitted == ["101", "102"]


def test_a_step_that_dies_before_its_line_goes_back_into_the_queue(stage: Stage) -> None:
    """In its job it could do that for ever, and nothing would count."""
    stage.starts()
    assert decide(stage.run, 137, stage.environ, 0.0, in_place=True).again
    assert not decide(stage.run, 137, stage.environ, 0.0, in_place=True).again
    assert stage.requeues == [["requeue", "101"]]


def test_a_job_that_is_preempted_gives_its_hosts_back(stage: Stage) -> None:
    stage.starts()
    stage.is_preempted()
    assert not decide(stage.run, 137, stage.environ, 0.0, in_place=True).again
    assert stage.requeues == [["requeue", "101"]]


def test_crashes_are_limited_in_place_too(fake: FakeSlurm, house: House) -> None:
    stage = Stage(fake, house, "resources.max_crashes=0")
    stage.starts()
    assert not decide(stage.run, 137, stage.environ, 0.0, in_place=True).again
    assert (stage.requeues, stage.outcome) == ([], "not_requeued")


def test_a_failure_of_the_users_is_left_to_him(stage: Stage) -> None:
    stage.starts()
    stage.failure("exception")
    assert "not started again" in after(stage, 1)
    assert (stage.requeues, stage.submitted, stage.outcome) == ([], ["101"], "not_requeued")


def test_a_rank_that_was_killed_without_a_word_is_a_crash(stage: Stage) -> None:
    stage.starts()
    after(stage, 137)
    assert (stage.requeues, stage.why) == ([["requeue", "101"]], "killed")
    failure = read_json(stage.run.failure)
    assert failure["class"] == "killed"


@pytest.mark.parametrize("is_told", [True, False])
def test_a_run_on_a_full_disk_is_not_started_again(stage: Stage, tmp_path: Path, is_told: bool) -> None:
    stage.starts()
    kept = shutil.copytree(stage.run.path, tmp_path / "kept", symlinks=True)
    with small_disk(stage.run.path):
        shutil.copytree(kept, stage.run.path, symlinks=True, dirs_exist_ok=True)
        keep_reserve(stage.run)
        fill(stage.run.path)
        if is_told:
            stage.failure("io")
        assert os.strerror(errno.ENOSPC) in after(stage, 4)
        assert (stage.requeues, stage.submitted) == ([], ["101"])
        assert read_json(stage.run.failure)["class"] == "io"


def test_crashes_are_limited(fake: FakeSlurm, house: House) -> None:
    stage = Stage(fake, house, "resources.max_crashes=0")
    stage.starts()
    stage.failure("io")
    assert "max_crashes" in after(stage, 1)
    assert stage.requeues == []


def test_a_run_that_is_submitted_again_has_the_limit_of_its_last_submission(stage: Stage) -> None:
    stage.run.job.write_text("max_crashes: 0\n")
    stage.starts()
    stage.failure("io")
    assert "max_crashes" in after(stage, 1)
    assert stage.requeues == []


def test_a_step_that_could_not_even_begin_is_written_down(stage: Stage) -> None:
    """Its ranks found no interpreter, for example: there is no line and no failure.json."""
    after(stage, 127)
    (line,) = read_attempts(stage.run)
    assert (line.job_id, line.restart) == ("101", 0)
    assert stage.run.failure.exists()


def test_after_two_strikes_the_next_job_avoids_the_host(stage: Stage) -> None:
    for step in (2, 3):
        stage.starts(time_end=1.0, last_step=step, why="hang", host="bad", rank=1, step=step, blamed="bad")
    stage.failure("hang")
    after(stage, 77)
    assert (stage.requeues, stage.submitted) == ([], ["101", "102"])
    assert "#SBATCH --exclude=bad\n" in stage.script("102")
    assert "#SBATCH --dependency=afterany:101\n" in stage.script("102")


def test_a_host_that_is_avoided_already_needs_no_new_job(fake: FakeSlurm, house: House) -> None:
    stage = Stage(fake, house, "resources.exclude=bad")
    for step in (2, 3):
        stage.starts(time_end=1.0, last_step=step, why="hang", host="bad", rank=1, step=step, blamed="bad")
    stage.failure("hang")
    after(stage, 77)
    assert (stage.requeues, stage.submitted) == ([["requeue", "101"]], ["101"])


def test_a_run_that_goes_nowhere_is_held(stage: Stage) -> None:
    for _ in range(3):
        stage.starts()
        outcome = after(stage, 137)
        stage.job_id = f"{int(stage.job_id) + 1}"
        stage.environ["SLURM_JOB_ID"] = stage.job_id
        stage.says()
    assert "no step" in outcome
    assert len(stage.requeues) == 2
    assert read_json(stage.run.failure)["class"] == "no_progress"


# ---- runs that are no longer this job's


def test_a_run_that_has_finished_needs_nothing(stage: Stage) -> None:
    stage.stops()
    stage.run.result.write_text("{}")
    assert "finished" in after(stage, 143)
    assert stage.fake.calls("scontrol") == []


def test_a_run_that_another_start_has_taken_over_is_left_to_it(stage: Stage) -> None:
    stage.starts()
    stage.starts(job_id="999")
    assert "another start" in after(stage, 1)
    assert stage.requeues == []


def test_a_start_that_found_the_run_at_work_leaves_it_alone(stage: Stage) -> None:
    with FileLock(stage.run.alive):
        assert "another start" in after(stage, 2)
    assert not stage.run.attempts.exists()


# ---- nobody answers


def test_where_nothing_can_be_done_it_is_written_down(stage: Stage) -> None:
    stage.stops()
    stage.fake.goes_away()
    with pytest.raises(SlurmUnavailable):
        after(stage, 75)
    assert stage.outcome == "requeue_failed"


# ---- the command


def call(stage: Stage, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "slurm.job.decide_restart", *arguments],
        env={
            **stage.environ,
            **CODE,
            "STK_EXPERIMENT_DIR": str(stage.house.experiments),
        },
        cwd=stage.house.root,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("what", ["the folder", "the id", "the experiment file"])
def test_the_batch_script_names_the_run_in_any_way(stage: Stage, what: str) -> None:
    stage.stops()
    run = stage.run
    names = {"the folder": str(run.path), "the id": run.run_id, "the experiment file": "tiny.yaml"}
    done = call(stage, names[what], "75")
    assert (done.returncode, done.stdout) == (0, "stk: the run was stopped: requested\n")
    assert stage.requeues == [["requeue", "101"]]


def test_what_it_could_not_do_is_told_without_a_stack_trace(stage: Stage) -> None:
    done = call(stage, "nosuch", "75")
    assert (done.returncode, done.stderr) == (2, "")
    assert "stk resume" in done.stdout
    assert "no run 'nosuch'" in done.stdout


def test_it_costs_no_torch(tmp_path: Path) -> None:
    program = "import sys, slurm.job.decide_restart; print('torch' in sys.modules, 'submitit' in sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout == "False False\n"


# ---- what the webhook is told


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiving() as receiver:
        monkeypatch.setenv("HOOK_URL", receiver.url)
        yield receiver


def with_webhook(fake: FakeSlurm, house: House, *overrides: str) -> Stage:
    events = "resources.webhook_events=[end,failure,hold,requeue]"
    return Stage(fake, house, "resources.webhook_env=HOOK_URL", events, *overrides)


def test_a_failure_that_ends_the_run_is_told(fake: FakeSlurm, house: House, told: Receiver) -> None:
    stage = with_webhook(fake, house)
    stage.starts()
    stage.failure("exception")
    after(stage, 1)
    after(stage, 1)
    (message,) = told.messages
    assert (message["event"], message["job"], message["reason"]) == (
        "failure",
        "101",
        "exception, rank 0 on here, at step 3",
    )


def test_a_failure_after_which_the_run_goes_on_is_told_as_that(
    fake: FakeSlurm, house: House, told: Receiver
) -> None:
    stage = with_webhook(fake, house)
    stage.starts()
    stage.failure("io")
    after(stage, 1)
    assert [message["event"] for message in told.messages] == ["requeue"]


def test_a_run_that_is_held_is_told(fake: FakeSlurm, house: House, told: Receiver) -> None:
    stage = with_webhook(fake, house)
    for _ in range(3):
        stage.starts(time_end=1500.0, last_step=0, why="preempted")
    after(stage, 75)
    (message,) = told.messages
    assert (message["event"], message["state"]) == ("hold", "held")
    assert "3 starts in a row made no step" in message["reason"]


def test_a_cancelled_run_is_no_news(fake: FakeSlurm, house: House, told: Receiver) -> None:
    stage = with_webhook(fake, house)
    stage.stops("SIGTERM")
    stage.is_cancelled()
    after(stage, 75)
    assert told.messages == []


def test_a_webhook_that_refuses_changes_nothing_for_the_run(
    fake: FakeSlurm, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = with_webhook(fake, house)
    monkeypatch.setenv("HOOK_URL", nobody())
    stage.starts()
    stage.failure("io")
    assert "starting again" in after(stage, 1)
    assert stage.requeues == [["requeue", "101"]]
    (event,) = stage.events("not_notified")
    assert event["what"] == "requeue"
