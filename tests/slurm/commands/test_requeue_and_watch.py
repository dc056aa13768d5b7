"""stk requeue and stk watch, with a pretend Slurm."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.patience import PATIENCE_S
from tests.slurm.fake_slurm import FakeSlurm
from tests.slurm.house import CODE, House
from tests.slurm.stage import Stage
from toolkit.files import read_json_lines, write_json
from toolkit.run.failure.classes import NO_PROGRESS

SLEEP = "slurm.commands.runs.watch.sleep"

RELEASE = ["update", "jobid=101", "starttime=now+5"]


@pytest.fixture
def stage(fake: FakeSlurm, house: House) -> Stage:
    return Stage(fake, house)


def waits(stage: Stage, reason: str = "BeginTime", restarts: str = "1") -> None:
    stage.fake.change("101", state="PENDING", reason=reason, restarts=restarts)


# ---- requeue


def test_a_running_job_is_asked_to_save_and_go_back(stage: Stage) -> None:
    answer = stage.house.stk("requeue", stage.run.run_id)
    assert (answer.code, "asked to save" in answer.out) == (0, True)
    assert stage.fake.calls("scancel") == [["--signal=USR2", "--", "101"]]


def test_the_run_learns_that_the_signal_is_no_warning(stage: Stage) -> None:
    stage.house.stk("requeue", stage.run.run_id)
    (event,) = stage.events("requeue_requested")
    assert event["job_id"] == "101"


def test_a_job_that_waits_for_its_begin_time_is_let_go(stage: Stage) -> None:
    waits(stage)
    assert "may start" in stage.house.stk("requeue", stage.run.run_id).out
    assert RELEASE in stage.fake.calls("scontrol")
    assert stage.fake.calls("scancel") == []


def test_a_job_that_waits_for_something_else_is_left_waiting(stage: Stage) -> None:
    waits(stage, "Resources")
    assert "waits already (Resources)" in stage.house.stk("requeue", stage.run.run_id).out
    assert RELEASE not in stage.fake.calls("scontrol")


def test_an_ended_run_is_for_stk_resume(stage: Stage) -> None:
    stage.fake.change("101", state="CANCELLED")
    answer = stage.house.stk("requeue", stage.run.run_id)
    assert f"not live (cancelled): stk resume {stage.run.run_id}" in answer.out


def test_a_run_that_made_no_progress_is_held_and_may_be_resumed(stage: Stage) -> None:
    stage.starts(time_end=1.0, last_step=0, why="killed")
    stage.failure(NO_PROGRESS)
    stage.fake.change("101", state="FAILED")
    (row,) = stage.house.stk("status").out.splitlines()[1:2]
    assert "held" in row
    answer = stage.house.stk("requeue", stage.run.run_id)
    assert f"not live (held): stk resume {stage.run.run_id}" in answer.out
    assert stage.house.stk("resume", stage.run.run_id).code == 0
    assert stage.submitted == ["101", "102"]
    assert [line["event"] for line in read_json_lines(stage.run.events)].count("released") == 1


def test_a_job_that_slurm_holds_is_live(stage: Stage) -> None:
    waits(stage, "JobHeldUser")
    answer = stage.house.stk("submit", stage.house.config)
    assert (answer.code, "is held, job 101" in answer.err) == (2, True)


# ---- watch


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler is asked at every look."""
    monkeypatch.setattr("slurm.runs.watching.polling.PER_QUESTION_S", 0.0)


def watch(stage: Stage, *arguments: str) -> list[str]:
    answer = stage.house.stk("watch", "--until-finished", "--interval", "0.01", *arguments)
    assert answer.code == 0, answer.err
    return answer.out.splitlines()


def test_it_ends_when_no_run_is_live(stage: Stage) -> None:
    stage.fake.change("101", state="CANCELLED")
    (line,) = watch(stage)
    assert f"{stage.run.run_id} cancelled" in line


@pytest.mark.usefixtures("eager")
def test_it_shows_each_change_once_and_lets_a_requeued_job_start(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look finds another state of the job; a look costs one question about all jobs."""

    def looks() -> Iterator[None]:
        yield  # it runs, still
        waits(stage)
        yield
        stage.fake.change("101", state="COMPLETING", reason="")
        yield
        stage.fake.change("101", state="CANCELLED")
        yield

    steps = looks()
    monkeypatch.setattr(SLEEP, lambda _: next(steps))
    lines = [line.split(" ", 2)[2] for line in watch(stage, stage.run.run_id)]
    assert [line.split(" ")[0] for line in lines] == ["running", "requeued", "running", "cancelled"]
    assert stage.fake.calls("scontrol").count(RELEASE) == 1
    assert len(stage.fake.calls("squeue")) == 5


@pytest.mark.usefixtures("eager")
def test_a_first_start_at_a_chosen_time_is_left_waiting(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits(stage, restarts="0")
    monkeypatch.setattr(SLEEP, lambda _: stage.fake.change("101", state="CANCELLED"))
    watch(stage)
    assert RELEASE not in stage.fake.calls("scontrol")


@pytest.mark.usefixtures("eager")
def test_a_job_that_was_let_go_is_left_to_start(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking again would move its start."""
    waits(stage)
    rounds = iter(range(3))

    def sleep(_: float) -> None:
        if next(rounds, None) is None:
            stage.fake.change("101", state="CANCELLED")

    monkeypatch.setattr(SLEEP, sleep)
    watch(stage)
    assert stage.fake.calls("scontrol").count(RELEASE) == 1


@pytest.mark.usefixtures("eager")
def test_a_job_that_cannot_be_let_go_yet_is_tried_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is completing Slurm refuses, or takes it and forgets it."""
    waits(stage)
    stage.fake.refuses_to(" ".join(RELEASE), "slurm_update error: Job is no longer pending execution")
    rounds = iter(range(2))

    def sleep(_: float) -> None:
        if next(rounds, None) is None:
            stage.fake.change("101", state="CANCELLED")

    monkeypatch.setattr(SLEEP, sleep)
    watch(stage)
    assert stage.fake.calls("scontrol").count(RELEASE) == 3


def test_many_looks_cost_one_question_and_touch_no_job_twice(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer says that the job waits; the folder says when the run has finished."""
    waits(stage)
    stage.fake.refuses_to(" ".join(RELEASE), "slurm_update error: Job is no longer pending execution")
    rounds = iter(range(50))

    def sleep(_: float) -> None:
        if next(rounds, None) is None:
            write_json(stage.run.result, {"step": 8})

    monkeypatch.setattr(SLEEP, sleep)
    lines = watch(stage)
    assert [line.split(" ")[2] for line in lines] == ["requeued", "finished"]
    assert (len(stage.fake.calls("squeue")), len(stage.fake.calls("sacct"))) == (1, 0)
    assert stage.fake.calls("scontrol") == [RELEASE]


def test_ctrl_c_is_how_one_leaves(stage: Stage) -> None:
    command = [sys.executable, "-m", "slurm", "watch", "--interval", "60"]
    environ = {
        **stage.environ,
        **CODE,
        "STK_EXPERIMENT_DIR": str(stage.house.experiments),
    }
    # As in a terminal, also where the tests run in the background, whose children ignore the signal.
    keep = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        process = subprocess.Popen(
            command,
            cwd=stage.house.root,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, keep)
    try:
        assert process.stdout is not None
        assert "running" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert (process.returncode, errors) == (0, "")
