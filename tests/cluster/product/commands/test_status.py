"""`stk status` of a mixed population: what each run does, or what it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.product.user import User, Users, slowly
from tests.cluster.waiting import wait_until
from toolkit.run.run_dir import RunDir

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """A user whose runs, by what has become of them, stand still while the tests look."""

    user: User
    runs: dict[str, RunDir]
    jobs: dict[str, str]

    def look(self) -> dict[str, dict[str, Any]]:
        """The rows by what has become of the runs; asserts that Slurm was asked twice at most."""
        programs = ("squeue", "sacct", "scontrol")
        rows = self.user.stk_json("status", env=self.user.note_calls(*programs))
        assert len(self.user.calls(*programs)) <= 2
        names = {str(run.path): name for name, run in self.runs.items()}
        return {names[row["run_dir"]]: row for row in rows}


def _told(rows: dict[str, dict[str, Any]], *names: str) -> list[tuple[str, str]]:
    return [(rows[name]["state"], rows[name]["doing"]) for name in names]


@pytest.fixture(scope="module")
def population(users: Users) -> Iterator[Population]:
    user = users.user("status")
    try:
        yield _settle(user)
    finally:
        user.run("scancel", "--user=root", check=False)


def _settle(user: User) -> Population:
    """Bring one run into each state, and keep it there."""
    runs: dict[str, RunDir] = {}
    jobs: dict[str, str] = {}

    def submit(name: str, experiment: str, *words: str, faults: dict[str, str] | None = None) -> None:
        runs[name], jobs[name] = user.submit(experiment, f"name={name}", *words, env=faults)

    slow = slowly(1.0)
    submit("finished", "quick")
    submit("failed", "quick", faults={"STK_FAULTS": "raise at=forward step=3"})
    submit("requeued", "long", faults=slow)
    submit("uneven", "long", "resources.groups=[{nodes: 1, gpus: 1}, {nodes: 1, gpus: 0}]", faults=slow)
    submit("unmet", "quick", f"resources.dependency=afterok:{jobs['failed']}")
    submit("held", "quick", "resources.sbatch={hold: true}", "resources.gres=gpu:1")
    submit("dependent", "quick", f"resources.dependency=afterok:{jobs['held']}")
    submit("cancelled", "quick", "resources.sbatch={hold: true}")
    array = user.stk_json(
        "sweep", "long.yaml", "seed=1,2", "name=array", "--max-parallel", "1", "--cluster", "slurm", env=slow
    )
    for name, line in zip(("task", "next task"), array["runs"], strict=True):
        runs[name], jobs[name] = RunDir(Path(line["run_dir"])), line["job_id"]
    user.run("stk", "cancel", runs["cancelled"].run_id)
    for name in ("requeued", "uneven", "task"):
        user.wait_for_step(runs[name])
    _requeue_for_an_hour(user, runs["requeued"], jobs["requeued"])
    user.wait_until_finished(runs["finished"], jobs["finished"])
    user.wait_for_end(jobs["failed"])
    user.wait_for_end(jobs["unmet"])
    return Population(user=user, runs=runs, jobs=jobs)


def _requeue_for_an_hour(user: User, run: RunDir, job_id: str) -> None:
    user.run("stk", "requeue", run.run_id)
    wait_until(
        lambda: user.cluster.job(job_id)["JobState"] == "PENDING", lambda: f"{user.cluster.job(job_id)}"
    )
    user.run("scontrol", "update", f"jobid={job_id}", "starttime=now+1hour")


def test_status_says_what_every_run_does_or_waits_for(population: Population) -> None:
    rows = population.look()
    assert _told(rows, "finished", "failed", "unmet", "cancelled", "held") == [
        ("finished", "finished"),
        ("failed", "failed: error"),
        ("cancelled", "cancelled: what it waited for failed"),
        ("cancelled", "cancelled"),
        ("held", "held (JobHeldUser)"),
    ]
    assert _told(rows, "uneven", "task", "next task", "dependent") == [
        ("running", "training"),
        ("running", "training"),
        ("pending", "waiting for its turn in the array"),
        ("pending", f"waiting for job {population.jobs['held']}"),
    ]
    assert rows["requeued"]["state"] == "requeued"
    assert rows["requeued"]["doing"].startswith("waiting after requeue until ")
    assert rows["requeued"]["restarts"] == 0
    assert rows["failed"]["reason"].startswith("rank 0 on ")
    assert f"scontrol release {population.jobs['held']}" in rows["held"]["reason"]
    assert len(rows["uneven"]["hosts"]) == 2
    assert rows["task"]["eta_s"] > 0
    assert {rows[name]["sweep"] for name in ("task", "next task")} == {rows["task"]["sweep"]} != {""}
