"""The states of runs that have failed, and the reasons that are shown."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from slurm.client.queue import UNKNOWN, JobState
from slurm.status.run_state import CANNOT_ASK
from tests.slurm.status.folders import ended, started, state_of, submitted
from toolkit.files import write_json
from toolkit.run.events import note_event
from toolkit.run.failure.records import failure_record
from toolkit.run.run_dir import RunDir

RUNNING = JobState(state="running", slurm_state="RUNNING", raw_id="101")


def test_failure_shows_its_class_and_its_message(run: RunDir) -> None:
    message = "CUDA out of memory. Tried 2 GiB.\nmore"
    write_json(
        run.failure, failure_record("n", "out_of_memory", message, rank=3, host="c2", phase="p", step=4)
    )
    found = state_of(run, JobState(state="failed", slurm_state="FAILED"))
    assert (found.state, found.doing) == ("failed", "failed: out of memory")
    assert found.reason == "rank 3 on c2: CUDA out of memory. Tried 2 GiB."


@pytest.mark.parametrize(
    "decision, state", [("requeue", "unknown"), ("chained", "unknown"), ("not_requeued", "failed")]
)
def test_requeued_run_has_not_failed_while_slurm_does_not_answer(
    run: RunDir, decision: str, state: str
) -> None:
    write_json(run.failure, failure_record("n", "exception", "x", rank=0, host="c", phase="p", step=4))
    note_event(run, "not_requeued", job_id="100")
    note_event(run, decision, job_id="101")
    found = state_of(run, JobState(state="unknown", reason=f"{CANNOT_ASK}: no controller answers"))
    assert found.state == state


@pytest.mark.parametrize(
    "word, doing",
    [
        ("TIMEOUT", "failed: time limit"),
        ("OUT_OF_MEMORY", "failed: out of memory"),
        ("NODE_FAIL", "failed: host lost"),
        ("FAILED", "failed"),
    ],
)
def test_run_without_a_failure_file_shows_the_failure_of_slurm(run: RunDir, word: str, doing: str) -> None:
    found = state_of(run, JobState(state="failed", slurm_state=word, reason="exit code 1:0"))
    assert (found.state, found.doing, found.reason) == ("failed", doing, "exit code 1:0")


def test_job_that_was_not_started_again_shows_why_instead_of_its_exit_code(run: RunDir) -> None:
    """On a full disk there is no failure file, but a line may still fit into events.jsonl."""
    ended_job = JobState(state="failed", slurm_state="FAILED", reason="NonZeroExitCode", raw_id="101")
    note_event(run, "not_requeued", job_id="101", why="failure.json cannot be written")
    found = state_of(run, ended_job)
    assert (found.state, found.reason) == ("failed", "failure.json cannot be written")
    assert "failure.json" in state_of(run, replace(ended_job, slurm_state="PREEMPTED")).reason
    # The next job has ended, and has recorded nothing.
    submitted(run, "102")
    assert state_of(run, replace(ended_job, raw_id="102")).reason == "NonZeroExitCode"


@pytest.mark.parametrize("later", ["requeue", "chained", "started_in_place", "released"])
def test_earlier_reason_does_not_explain_the_end_of_a_run_that_went_on(run: RunDir, later: str) -> None:
    note_event(run, "not_requeued", job_id="101", why="failure.json cannot be written")
    note_event(run, later)
    assert state_of(run, JobState(state="failed", slurm_state="FAILED", reason="x")).reason == "x"


def test_earlier_reason_does_not_explain_the_end_of_a_later_attempt(run: RunDir) -> None:
    """Slurm or a person has requeued the job, which keeps its number."""
    started(run)
    note_event(run, "requeue_failed", job_id="101", reason="no controller answers")
    started(run, 2, restart=1, time_start=time.time() + 1)
    job = JobState(state="failed", slurm_state="TIMEOUT", reason="TimeLimit", raw_id="101")
    assert state_of(run, job).reason == "TimeLimit"
    ended(run, 2, why="SIGINT")
    assert "no controller" not in state_of(run, UNKNOWN).reason


@pytest.mark.parametrize(
    "job, words",
    [
        (JobState(state="failed", slurm_state="NODE_FAIL", raw_id="102"), "failed: host lost"),
        (JobState(state="finished", slurm_state="COMPLETED", raw_id="102"), "ended without finishing"),
    ],
)
def test_job_that_ended_before_its_first_attempt_is_not_explained_by_an_earlier_failure(
    run: RunDir, job: JobState, words: str
) -> None:
    record = failure_record("101.0.0", "out_of_memory", "no memory", rank=0, host="c", phase="p", step=4)
    started(run)
    ended(run, why="out_of_memory")
    write_json(run.failure, record)
    submitted(run, "102")
    found = state_of(run, job)
    assert found.state == "failed"
    assert words in f"{found.doing}; {found.reason}"
    assert "memory" not in f"{found.doing}; {found.reason}"
    started(run, 2, job="102", time_start=1.0)
    assert state_of(run, job).doing == "failed: out of memory", "the clock of its host is late"


def test_failure_file_without_known_keys_still_means_failed(run: RunDir) -> None:
    write_json(run.failure, {"odd": True})
    assert state_of(run, UNKNOWN).state == "failed"
