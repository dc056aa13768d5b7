"""A preemption by the warning signal, as some sites have it, a task of an array that comes back, and a job
without its batch script.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slurm.status.submissions import submissions
from tests.cluster.product.user import SCRIPTS, Users, slowly
from tests.cluster.waiting import wait_until
from toolkit.run.run_dir import RunDir, find_runs

from .requeue_cases import Case, assert_as_if_undisturbed, host, submit, under_way

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cases(users: Users) -> Iterator[dict[str, Case]]:
    """All runs of this file, each after its interruption; they are still running."""
    cases = {
        "signal": submit(users, "signal", "partition=preemptible", host(users, 3), "gres=gpu:4"),
        "script killed": submit(users, "killed"),
        **array(users),
    }
    task = cases["array task"]
    with under_way(users, cases, unwatched=()):
        task.user.run("scancel", "--signal=USR2", task.job_id)
        killed = cases["script killed"]
        killed.user.run("scancel", "--batch", "--signal=KILL", killed.job_id)
        with users.cluster.preempting_with_user_signal():
            cases["signal"].preempt()
            cases["signal"].wait_until_stopped()
        yield cases


_ARRAY = """\
#!/bin/bash
#SBATCH --array=0-1 --requeue --open-mode=append
# Only the task that is to be disturbed has to wait for it.
[ "$SLURM_ARRAY_TASK_ID" = 1 ] || unset STK_FAULTS
export STK_CONFIG=long.yaml STK_EXPERIMENT_DIR="$STK_EXPERIMENT_DIR/$SLURM_ARRAY_TASK_ID"
exec {train}
"""


def array(users: Users) -> dict[str, Case]:
    """Two runs as the tasks of an array; the second's own job id is that of the whole array."""
    user = users.user("array")
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


@pytest.mark.parametrize("name", ["signal", "array task", "script killed"])
def test_interrupted_run_ends_as_if_undisturbed(
    cases: dict[str, Case], long_alone: RunDir, name: str
) -> None:
    assert_as_if_undisturbed(cases[name], long_alone)


def test_preemption_by_the_warning_signal_is_recorded_as_preemption(cases: dict[str, Case]) -> None:
    case = cases["signal"]
    case.finish()
    assert "SIGUSR2" in case.signals
    assert case.whys == ["preempted", "finished"]


def test_job_whose_batch_script_was_killed_comes_back(cases: dict[str, Case]) -> None:
    """Slurm ends such a job in the way of a cancelled one, with another reason."""
    case = cases["script killed"]
    case.finish()
    assert case.whys == ["requested", "finished"]


def test_array_task_is_requeued_without_its_sibling(cases: dict[str, Case]) -> None:
    task, sibling = cases["array task"], cases["array sibling"]
    task.finish()
    sibling.finish()
    assert sibling.whys == ["finished"]
    assert task.whys == ["requested", "finished"]
    assert task.events("requeue")[0]["job_id"] == task.job_id
    # As `stk status` finds it while it waits in the queue.
    assert [each.job_id for each in submissions(task.run)] == [task.job_id]
    assert submissions(sibling.run) == []
