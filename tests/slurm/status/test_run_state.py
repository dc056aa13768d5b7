"""What a run is doing, by its folder, its heartbeat and what Slurm says of its job."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from slurm.client.queue import STATES, UNKNOWN, JobState
from slurm.status.decisions import CANCEL_EVENT
from slurm.status.run_state import CANNOT_ASK
from slurm.status.submissions import intend, record
from tests.slurm.status.folders import beats, ended, new_run, started, state_of, submitted
from toolkit.files import append_json_line, write_json
from toolkit.run.events import note_event
from toolkit.run.run_dir import RunDir
from toolkit.system.host import boot

RUNNING = JobState(state="running", slurm_state="RUNNING", raw_id="101")
NOBODY_ANSWERS = JobState(state="unknown", reason=f"{CANNOT_ASK}: no controller answers")


def test_run_that_was_being_submitted_again_is_unknown_and_not_failed(run: RunDir) -> None:
    started(run)
    ended(run)
    assert state_of(run).state == "cancelled"
    intend(run, "tiny.1")
    assert (state_of(run).state, state_of(run).doing) == ("unknown", "being submitted")


@pytest.mark.parametrize(
    "phase, doing",
    [
        ("forward", "training"),
        ("communication", "training"),
        ("save", "saving"),
        ("evaluation", "evaluating"),
        ("load", "loading a checkpoint"),
        ("data preparation", "preparing data"),
        ("report", "writing its report"),
        ("a phase of a later version", "training"),
    ],
)
def test_a_heartbeat_tells_what_a_run_does(run: RunDir, phase: str, doing: str) -> None:
    started(run)
    beats(run, phase)
    found = state_of(run, RUNNING)
    assert (found.state, found.doing, found.reason, found.is_live) == ("running", doing, "", True)


def test_a_job_whose_ranks_have_written_nothing_yet_is_starting(run: RunDir) -> None:
    assert state_of(run, RUNNING).doing == "starting"
    started(run)
    assert state_of(run, RUNNING).doing == "starting"


def test_step_newer_than_the_heartbeat_means_training(run: RunDir) -> None:
    started(run)
    write_json(run.progress, {"time": time.time() - 600, "step": 9})
    beats(run, "rendezvous", ago_s=10)
    assert state_of(run, RUNNING).doing == "starting"
    write_json(run.progress, {"time": time.time(), "step": 10})
    assert state_of(run, RUNNING).doing == "training"


def test_long_start_shows_its_duration(run: RunDir) -> None:
    started(run, time_start=1.0)
    assert state_of(run, RUNNING).doing.startswith("starting for ")


def test_attempt_before_a_requeue_is_not_the_current_one(run: RunDir) -> None:
    """Its heartbeat may be seconds old, and it has had no time to write its end."""
    started(run)
    beats(run)
    assert state_of(run, replace(RUNNING, restarts=1)).doing == "starting"
    assert state_of(run, replace(RUNNING, raw_id="102")).doing == "starting"


def test_attempt_with_a_recorded_end_is_ending(run: RunDir) -> None:
    started(run)
    ended(run)
    assert state_of(run, RUNNING).doing == "ending"


def test_attempt_with_a_concluded_failure_is_followed_by_a_start_in_its_job(run: RunDir) -> None:
    started(run)
    ended(run, why="killed", concluded=True)
    assert state_of(run, RUNNING).doing == "starting"


@pytest.mark.parametrize(
    "word, doing", [("COMPLETING", "ending"), ("SUSPENDED", "suspended"), ("SIGNALING", "asked to stop")]
)
def test_slurm_state_of_a_job_can_override_the_heartbeat(run: RunDir, word: str, doing: str) -> None:
    started(run)
    beats(run)
    assert state_of(run, replace(RUNNING, slurm_state=word)).doing == doing


def test_silent_run_is_shown_as_maybe_hung(run: RunDir) -> None:
    started(run)
    beats(run, ago_s=250)
    found = state_of(run, RUNNING)
    assert found.state == "running"
    assert re.fullmatch(r"silent for 4 min [1-5]\d s: maybe hung", found.doing)


def test_run_with_heartbeats_but_no_steps_stands_still(run: RunDir) -> None:
    started(run)
    beats(run, still_s=301.0)
    assert state_of(run, RUNNING).doing == "standing still for 5 min 01 s"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"time": "soon"}', '{"time": 1e400}'])
def test_damaged_heartbeat_is_ignored(run: RunDir, damage: str) -> None:
    started(run)
    beats(run)
    run.heartbeat("101.0.0", 0).write_text(damage)
    assert state_of(run, RUNNING).state == "running"


@pytest.mark.parametrize(
    "resources, hosts",
    [
        ("gres: gpu:a100:2\n", "GPUs"),
        ("nodes: 2\ngpus_per_task: '1'\n", "GPUs"),
        ("groups:\n- nodes: 1\n  gpus: 3\n", "GPUs"),
        ("groups:\n- nodes: 1\n  gpus: 0\n", "hosts"),
        ("sbatch:\n  gpus: a100:2\n", "GPUs"),
        ("sbatch:\n  gpus-per-socket: 1\n", "GPUs"),
        ("sbatch:\n  gpus: false\n", "hosts"),
        ("nodes: 2\ngres: null\ngpus_per_node: null\ngpus_per_task: null\n", "hosts"),
        ("", "hosts"),
    ],
)
def test_pending_job_waits_for_gpus_or_hosts_it_asked_for(run: RunDir, resources: str, hosts: str) -> None:
    run.job.write_text(resources)
    job = JobState(state="pending", slurm_state="PENDING", reason="Resources")
    assert state_of(run, job).doing == f"waiting for {hosts} (Resources)"


def test_job_that_is_being_requeued_says_so(run: RunDir) -> None:
    started(run)
    found = state_of(run, JobState(state="requeued", slurm_state="REQUEUED"))
    assert (found.state, found.doing) == ("requeued", "going back into the queue")


def test_job_that_slurm_was_not_asked_about_yet_is_not_going_back_into_the_queue(run: RunDir) -> None:
    assert state_of(run, JobState(state="pending")).doing == "in the queue"


def test_a_held_job_says_how_to_release_it(run: RunDir) -> None:
    job = JobState(
        state="held", slurm_state="PENDING", reason="JobHeldUser", advice="held: scontrol release 101"
    )
    found = state_of(run, job)
    assert (found.state, found.doing, found.is_live) == ("held", "held (JobHeldUser)", True)
    assert "scontrol release 101" in found.reason


def test_a_cancelled_job_does_not_say_what_it_waited_for(run: RunDir) -> None:
    found = state_of(run, JobState(state="cancelled", slurm_state="CANCELLED", reason="Priority"))
    assert (found.doing, found.reason) == ("cancelled", "")


def test_job_whose_dependency_failed_says_so(run: RunDir) -> None:
    job = JobState(state="cancelled", slurm_state="CANCELLED", reason="DependencyNeverSatisfied")
    assert state_of(run, job).doing == "cancelled: what it waited for failed"


@pytest.mark.parametrize("job", [UNKNOWN, NOBODY_ANSWERS])
def test_run_with_a_recent_heartbeat_is_live_whatever_slurm_knows(run: RunDir, job: JobState) -> None:
    """The controller is away, or it is not the controller of the job's cluster."""
    started(run)
    beats(run, "save", ago_s=7)
    found = state_of(run, job)
    assert (found.state, found.doing, found.is_live) == ("running", "saving", True)
    assert found.reason.startswith(job.reason)
    assert "its rank 0 on node1 gives signs of life" in found.reason


@pytest.mark.parametrize("word", ["FAILED", "CANCELLED", "COMPLETED"])
def test_run_that_another_job_or_a_terminal_trains_is_live_after_its_newest_known_job_has_ended(
    run: RunDir, word: str
) -> None:
    job = JobState(state=STATES[word], slurm_state=word, raw_id="101")
    started(run)
    beats(run)
    assert not state_of(run, job).is_live
    started(run, 2, job="", nonce="terminal")
    beats(run, nonce="terminal")
    assert (state_of(run, job).state, state_of(run, job).is_live) == ("running", True)
    started(run, 3, job="102")
    beats(run, nonce="102.0.0")
    assert (state_of(run, job).state, state_of(run, job).is_live) == ("running", True)


def test_run_that_waits_for_another_is_unknown_while_slurm_does_not_answer(
    run: RunDir, tmp_path: Path
) -> None:
    submitted(run, awaits=str(new_run(tmp_path, "first").path))
    assert state_of(run, NOBODY_ANSWERS).state == "unknown"
    assert state_of(run, UNKNOWN).state == "cancelled"


@pytest.mark.parametrize("job", [UNKNOWN, NOBODY_ANSWERS])
def test_old_heartbeat_does_not_make_a_run_live(run: RunDir, job: JobState) -> None:
    started(run)
    beats(run, ago_s=1000)
    found = state_of(run, job)
    assert (found.state, found.is_live) == ("unknown", False)


@pytest.mark.parametrize(
    "ahead_s, file_s, state",
    [
        (3600, 0, "running"),
        (60, 60, "running"),
        # The file's own time is of one clock, the file server's.
        (3600, -1000, "unknown"),
        # Neither the writer's clock nor the file server's is this host's.
        (3600, 3000, "unknown"),
    ],
)
def test_heartbeat_of_another_clock_counts_by_the_time_of_its_file(
    run: RunDir, ahead_s: float, file_s: float, state: str
) -> None:
    started(run)
    beats(run, ago_s=-ahead_s)
    written = time.time() + file_s
    os.utime(run.heartbeat("101.0.0", 0), (written, written))
    found = state_of(run, UNKNOWN)
    assert (found.state, found.is_live) == (state, state == "running")
    if file_s == 3000:
        assert "50 min" in found.reason
        assert state_of(run, RUNNING).doing == "training", "Slurm knows that it lives"


def test_state_of_a_purged_job_comes_from_its_folder(run: RunDir) -> None:
    assert state_of(run, UNKNOWN).state == "unknown"
    assert "stk resume" in state_of(run, UNKNOWN).reason
    started(run)
    ended(run, why="time_limit")
    note_event(run, "not_requeued", why="time_limit", reason="its time limit has ended 3 attempts")
    found = state_of(run, UNKNOWN)
    assert (found.state, found.doing, found.is_live) == ("cancelled", "stopped: time limit", False)
    assert found.reason.startswith("stopped by its time limit after step 10; its time limit has ended 3")
    write_json(run.result, {"state": "finished", "step": 3})
    assert state_of(run, UNKNOWN).state == "finished"


def test_a_later_submission_or_attempt_makes_a_cancellation_old(run: RunDir) -> None:
    submitted(run)
    note_event(run, CANCEL_EVENT, job_id="101")
    assert state_of(run, UNKNOWN).state == "cancelled"
    started(run, job="terminal", time_start=time.time() + 1)
    assert state_of(run, UNKNOWN).state == "unknown"
    submitted(run, "102")
    assert state_of(run, UNKNOWN).state == "unknown"
    note_event(run, CANCEL_EVENT, job_id="102", time=time.time() + 2)
    assert state_of(run, UNKNOWN).state == "cancelled"


def test_cancelled_run_that_said_how_it_ended_keeps_that_state(run: RunDir) -> None:
    submitted(run)
    started(run)
    note_event(run, CANCEL_EVENT, job_id="101")
    ended(run, why="cancelled")
    assert "after step 10" in state_of(run, UNKNOWN).reason


def test_finished_run_whose_result_was_deleted_is_not_said_to_be_stopped(run: RunDir) -> None:
    started(run)
    ended(run, why="finished")
    found = state_of(run, UNKNOWN)
    assert (found.state, found.is_live) == ("cancelled", False)
    assert "stopped" not in found.doing + found.reason
    assert str(run.result) in found.reason


@pytest.mark.parametrize("saved, since", [([], "step 0:"), ([7], "step 7,"), ([7, 10], None)])
def test_stopped_run_says_which_step_it_continues_from(
    run: RunDir, saved: list[int], since: str | None
) -> None:
    started(run)
    ended(run, last_step=10)
    for step in saved:
        run.checkpoint(step).mkdir(parents=True)
    reason = state_of(run, UNKNOWN).reason
    assert f"continues it from {since}" in reason if since else reason.endswith("continues it")


def test_failed_requeue_shows_slurms_words(run: RunDir) -> None:
    started(run)
    ended(run, why="preempted")
    note_event(run, "requeue_failed", reason="Slurm refused: scontrol requeue\nmore")
    assert "(Slurm refused: scontrol requeue)" in state_of(run, UNKNOWN).reason


def test_local_run_of_another_host_is_live_by_its_heartbeat(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    local = {"cluster": "local", "job_id": "local-7", "host": "elsewhere", "name": "n", "time": 1.0}
    append_json_line(run.submissions, local)
    started(run, job="")
    beats(run, nonce=".0.0", boot="of that host")
    assert state_of(run).state == "running"
    beats(run, nonce=".0.0", ago_s=1000)
    assert state_of(run).state == "unknown"


def test_lock_overrides_a_recent_heartbeat_on_this_host(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    process = subprocess.Popen([sys.executable, "-IS", "-c", ""])
    process.wait()
    record(run, cluster="local", job_id=f"local-{process.pid}", name="n")
    started(run, job="")
    beats(run, nonce=".0.0", host=socket.gethostname())
    found = state_of(run)
    assert (found.state, found.doing) == ("failed", "failed: killed")
    assert "gone without an error message" in found.reason
    assert "stk resume" in found.reason
    with FileLock(run.alive):
        assert state_of(run).doing == "training"


def test_run_that_died_silently_on_this_host_has_failed(tmp_path: Path) -> None:
    """As `stk run` leaves it on a full disk: it is no submission."""
    run = new_run(tmp_path)
    started(run, job="")
    beats(run, nonce=".0.0", host=socket.gethostname())
    assert (state_of(run).state, state_of(run).is_live) == ("failed", False)


def test_run_that_died_under_an_earlier_name_of_this_host_has_failed(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    line = {"cluster": "local", "job_id": "local-1", "host": "earlier-name", "name": "n", "time": 1.0}
    append_json_line(run.submissions, {**line, "boot": boot()})
    started(run, job="")
    beats(run, nonce=".0.0", host="earlier-name", boot=boot())
    assert (state_of(run).state, state_of(run).doing) == ("failed", "failed: killed")


def test_run_is_seen_as_running_through_a_read_only_lock(run: RunDir) -> None:
    with FileLock(run.alive):
        os.chmod(run.alive, 0o444)
        assert state_of(run, UNKNOWN).state == "running"


@pytest.mark.parametrize(
    "job, reason",
    [
        (JobState(state="requeued", slurm_state="PENDING", reason="BeginTime", restarts=1), "BeginTime"),
        (JobState(state="held", slurm_state="REQUEUE_HOLD", advice="scontrol release 101"), "scontrol"),
        (JobState(state="failed", slurm_state="NODE_FAIL", reason="exit code 1:0", restarts=1), ""),
        (UNKNOWN, ""),
    ],
    ids=["requeued", "held", "failed", "unknown"],
)
def test_processes_that_train_on_a_host_that_slurm_has_given_up_are_shown_as_training(
    run: RunDir, job: JobState, reason: str
) -> None:
    started(run)
    beats(run)
    with FileLock(run.alive):
        found = state_of(run, replace(job, raw_id="101"))
    assert (found.state, found.doing, found.is_live) == ("running", "training", True)
    assert found.reason.startswith(reason)
    assert bool(found.reason) == bool(reason)
