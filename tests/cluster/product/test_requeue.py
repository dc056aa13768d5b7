"""Ways in which Slurm takes a job's hosts away, and how the run goes on: as if nothing had happened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until
from toolkit.run.run_dir import RunDir, find_runs

from .requeue_cases import Case, Stage, assert_as_if_undisturbed, host, under_way
from .user import SCRIPTS, User, slowly, starts


@pytest.fixture(scope="module")
def stage(cluster: Cluster, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(cluster, table, tmp_path_factory.mktemp("requeue"))


@pytest.fixture(scope="module")
def cases(stage: Stage) -> Iterator[dict[str, Case]]:
    """All runs of this file, each with what happened to it; they are still at it."""
    alone = ("gres=gpu:4", "tasks_per_node=2")
    shared = (host(stage, 3), "gres=gpu:2")
    cases = {
        "grace": stage.submit("grace", "partition=preemptible", host(stage, 0), *alone),
        "no grace": stage.submit("nograce", "partition=preemptible0", host(stage, 1), *alone),
        "signal": stage.submit("signal", "partition=preemptible", *shared),
        "signal, no grace": stage.submit("signal0", "partition=preemptible0", *shared),
        # Two minutes are not enough for all its steps.
        "chain": stage.submit("chain", "time=2"),
        **array(stage),
    }
    with under_way(stage, cases, unwatched=("chain",)):
        disturb(cases)
        yield cases


def disturb(cases: dict[str, Case]) -> None:
    task = cases["array task"]
    for name in ("grace", "no grace"):
        cases[name].preempt()
    task.user.run("scancel", "--signal=USR2", task.job_id)
    for name in ("grace", "no grace"):
        cases[name].wait_until_stopped()
    with task.user.cluster.preempting_with_user_signal():
        cases["signal"].preempt()
        for name in ("signal", "signal, no grace"):
            cases[name].wait_until_stopped()


_ARRAY = """\
#!/bin/bash
#SBATCH --array=0-1 --requeue --open-mode=append
# Only the task that is to be disturbed has to wait for it.
[ "$SLURM_ARRAY_TASK_ID" = 1 ] || unset STK_FAULTS
export STK_CONFIG=long.yaml STK_EXPERIMENT_DIR="$STK_EXPERIMENT_DIR/$SLURM_ARRAY_TASK_ID"
exec {train}
"""


def array(stage: Stage) -> dict[str, Case]:
    """Two runs as the tasks of an array; the second's own job id is that of the whole array."""
    user = stage.user("array")
    script = user.home / "array.sh"
    script.write_text(_ARRAY.format(train=SCRIPTS / "train.sh"))
    job_id = user.sbatch("--ntasks=2", script, env=slowly(1.0))
    folders = [user.runs / "0", user.runs / "1"]
    wait_until(lambda: all([*find_runs(each)] for each in folders), lambda: f"no runs in {user.runs}")
    runs = [next(iter(find_runs(folder))) for folder in folders]
    assert user.cluster.job(f"{job_id}_1")["JobId"] == job_id
    return {
        "array sibling": Case(user, runs[0], f"{job_id}_0"),
        "array task": Case(user, runs[1], f"{job_id}_1"),
    }


DISTURBED = ("grace", "no grace", "signal", "signal, no grace", "array task", "chain")


@pytest.mark.parametrize("name", DISTURBED)
def test_whatever_stops_a_run_it_ends_as_if_undisturbed(
    cases: dict[str, Case], long_alone: RunDir, name: str
) -> None:
    assert_as_if_undisturbed(cases[name], long_alone)


def test_with_a_grace_period_the_run_asks_for_its_place_back(cases: dict[str, Case]) -> None:
    """Slurm would not put back a job that leaves by itself within the grace period."""
    case = cases["grace"]
    case.finish()
    (requeue,) = case.events("requeue")
    assert (requeue["why"], requeue["by"], case.whys[0]) == ("preempted", "stk", "preempted")
    assert case.signals == ["SIGTERM"]
    assert [start["restart"] for start in starts(case.run)] == [0, 1]


def test_the_logs_of_both_starts_and_of_the_job_are_at_hand(cases: dict[str, Case]) -> None:
    case = cases["grace"]
    case.finish()
    listed = case.user.stk_json("logs", case.run.run_id, "--list")
    assert [(each["attempt"], each["rank"], each["why"]) for each in listed if each["attempt"]] == [
        (1, 0, "preempted"), (1, 1, "preempted"), (2, 0, "finished"), (2, 1, "finished"),
    ]  # fmt: skip
    first, second = (
        case.user.run("stk", "logs", case.run.run_id, "--attempt", attempt, "--rank", "1").stdout
        for attempt in ("1", "2")
    )
    assert "INFO rank 1 of 2" in first
    assert "INFO rank 1 of 2" in second
    assert first != second
    merged = case.user.run("stk", "logs", case.run.run_id, "--merge").stdout
    assert {line.partition(" |")[0] for line in merged.splitlines()} == {"rank 0", "rank 1"}
    assert listed[-1]["rank"] == "batch"


def test_without_grace_the_step_at_work_is_saved_and_slurm_puts_the_job_back(
    cases: dict[str, Case],
) -> None:
    case = cases["no grace"]
    case.finish()
    (requeue,) = case.events("requeue")
    assert (requeue["why"], requeue["by"], case.whys[0]) == ("preempted", "slurm", "preempted")
    assert case.signals == ["SIGTERM"]


def test_before_its_time_limit_a_job_submits_the_next_one(cases: dict[str, Case]) -> None:
    case = cases["chain"]
    case.finish()
    assert set(case.whys[:-1]) == {"time_limit"}
    jobs = [start["job_id"] for start in starts(case.run)]
    assert len(set(jobs)) == len(jobs)
    assert {start["restart"] for start in starts(case.run)} == {0}
    assert not case.events("requeue")


@pytest.mark.parametrize("name", ["signal", "signal, no grace"])
def test_a_preemption_by_the_warning_signal_is_not_taken_for_the_warning(
    cases: dict[str, Case], name: str
) -> None:
    case = cases[name]
    case.finish()
    assert "SIGUSR2" in case.signals
    assert case.whys == ["preempted", "finished"]


def test_one_task_of_an_array_comes_back_and_its_sibling_stays(cases: dict[str, Case]) -> None:
    task, sibling = cases["array task"], cases["array sibling"]
    task.finish()
    sibling.finish()
    assert sibling.whys == ["finished"]
    assert task.whys == ["requested", "finished"]
    assert task.events("requeue")[0]["job_id"] == task.job_id


def test_a_run_that_had_finished_leaves_at_once_when_slurm_starts_it_again(user: User) -> None:
    run, job_id = user.submit("quick")
    user.wait_until_finished(run, job_id)
    before = run.result.read_bytes()
    user.run("scontrol", "requeue", job_id)
    wait_until(lambda: user.cluster.job(job_id)["Restarts"] == "1", lambda: str(user.cluster.job(job_id)))
    user.wait_until_finished(run, job_id)
    assert len(starts(run)) == 1
    assert run.result.read_bytes() == before
