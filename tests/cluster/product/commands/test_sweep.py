"""Runs as tasks of one job array: each has its own folder, its own id, and its own fate."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.product.user import User, assert_same_training, slowly, starts
from tests.cluster.waiting import wait_until
from tests.toolkit.support.tiny import events
from toolkit.run.run_dir import RunDir


def sweep(user: User, *arguments: str, step_s: float = 0.0) -> list[tuple[RunDir, str]]:
    """The runs of a sweep with their job ids."""
    answer = user.stk_json("sweep", *arguments, "--cluster", "slurm", env=slowly(step_s))
    assert [line["job_id"] for line in answer["runs"]] == [
        f"{answer['job_id']}_{task}" for task in range(len(answer["runs"]))
    ]
    return [(RunDir(Path(line["run_dir"])), line["job_id"]) for line in answer["runs"]]


@pytest.mark.slow
def test_requeued_task_ends_as_if_undisturbed_and_its_sibling_is_not_requeued(
    user: User, long_alone: RunDir
) -> None:
    """The last task: its own job id is that of the whole array, which means all of its tasks."""
    (sibling, sibling_id), (run, job_id) = sweep(user, "long.yaml", "train.epochs=2,20", step_s=0.4)
    user.wait_for_step(run)
    assert user.cluster.job(job_id)["JobId"] == job_id.partition("_")[0]
    assert f"job {job_id} was asked to save" in user.run("stk", "requeue", run.run_id).stdout
    wait_until(lambda: "why" in starts(run)[0], lambda: user.story(run))
    user.run("stk", "watch", "--until-finished", "--interval", "1")
    for each, its_id in ((sibling, sibling_id), (run, job_id)):
        user.wait_until_finished(each, its_id)
    assert [start["why"] for start in starts(run)] == ["requested", "finished"]
    assert [start["restart"] for start in starts(run)] == [0, 1]
    assert [start["why"] for start in starts(sibling)] == ["finished"]
    assert_same_training(run, long_alone)
    (requeue,) = events(run, "requeue")
    assert requeue["job_id"] == job_id


def test_waiting_task_is_cancelled_without_its_sibling(user: User) -> None:
    (first, first_id), (second, second_id) = sweep(
        user, "quick.yaml", "seed=1,2", "--max-parallel", "1", step_s=0.2
    )
    user.wait_for_step(first)
    waiting = user.status(second)
    assert (waiting["state"], waiting["reason"]) == ("pending", "JobArrayTaskLimit")
    user.run("stk", "cancel", second.run_id)
    user.wait_until_finished(first, first_id)
    assert user.wait_for_end(second_id) == "CANCELLED"
    assert user.status(second)["state"] == "cancelled"
    assert "training: step" in user.run("stk", "logs", first.run_id).stdout
    assert [file.name.split(".")[1] for file in sorted(first.logs.iterdir())] == ["0", "batch"]


@pytest.mark.slow
def test_runs_submitted_later_keep_the_throttle_and_are_reported(user: User) -> None:
    """Each run begins with the code that all share, and has its own from then on."""
    swept = ("quick.yaml", "optimizer.lr=0.1,0.001", "seed=1,2", "--max-parallel", "1", "--at-most", "3")
    first = user.stk_json("sweep", *swept, "--cluster", "slurm", env=slowly(0.2))
    runs = [RunDir(Path(line["run_dir"])) for line in first["runs"]]
    ids = [f"{first['job_id']}_{task}" for task in range(3)]
    assert [line["job_id"] for line in first["runs"]] == [*ids, None]
    assert runs[2].code.is_symlink()
    (later,) = user.stk_json("sweep", "resume", "quick")["jobs"].values()
    assert user.cluster.job(later)["Dependency"].startswith(f"afterany:{first['job_id']}_")
    for run, job_id in zip(runs, [*ids, later], strict=True):
        user.wait_until_finished(run, job_id)
    assert user.stk_json("sweep", "status", "quick")["counts"] == {"finished": 4}
    files = [run.code / "toolkit" / "run" / "run_dir.py" for run in runs]
    assert not any(run.code.is_symlink() for run in runs)
    assert all(file.samefile(files[0]) for file in files[:3])
    report = user.stk_json("sweep", "report", "quick")
    assert report["best"]["run_id"] in {run.run_id for run in runs}
    assert [group["runs"] for group in report["groups"]] == [2, 2]
