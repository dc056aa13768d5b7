"""Runs that follow each other on the real cluster: only the final success of the first releases the second.

The chains run side by side, because each of them mostly waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from slurm.status.dependency import why_not_begun
from tests.cluster.product.user import User, Users, slowly, starts
from tests.cluster.waiting import wait_until
from tests.toolkit.support.tiny import events
from toolkit.run.run_dir import RunDir

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Chain:
    """A user's two runs, of which the second waits for the first."""

    user: User
    runs: tuple[RunDir, RunDir]
    jobs: tuple[str, str]

    @property
    def evaluation(self) -> str:
        """The job that scores the second run, where one was asked for."""
        (event,) = events(self.runs[1], "evaluation")
        return str(event["job_id"])


def chain(user: User, *given: str, faults: str, then: tuple[str, ...] = ("--evaluate",)) -> Chain:
    """Submit long, and quick from its weights; score that unless told otherwise."""
    begins = "train.start_from_checkpoint=${oc.env:STK_EARLIER_RUN}"
    then = ("--then", "quick.yaml", "name=second", "train.epochs=1", begins, *then)
    first = user.stk_json("submit", "long.yaml", *given, *then, env={"STK_FAULTS": faults})
    (second,) = first["then"]
    runs = (RunDir(Path(first["run_dir"])), RunDir(Path(second["run_dir"])))
    return Chain(user, runs, (first["job_id"], second["job_id"]))


@pytest.fixture(scope="module")
def chains(users: Users) -> Iterator[dict[str, Chain]]:
    """The first run is requeued in one chain, continues in a new job in another, and fails in the third."""
    short = ("train.epochs=3",)
    made = {
        "requeued": chain(users.user("requeued"), *short, faults=slowly(1.0)["STK_FAULTS"], then=()),
        "chained": chain(
            users.user("chained"),
            *short,
            "resources.requeue=chain",
            then=("resources.requeue=chain", "--evaluate"),
            faults="kill at=forward step=5 attempt=1",
        ),
        "failed": chain(users.user("failed"), "resources.max_crashes=0", faults="raise at=forward step=3"),
    }
    requeued = made["requeued"]
    first = requeued.runs[0]
    try:
        requeued.user.wait_for_step(first)
        requeued.user.run("stk", "requeue", first.run_id)
        wait_until(lambda: "why" in starts(first)[0], lambda: requeued.user.story(first))
        # It starts without the two minutes of Slurm, once it waits.
        users.cluster.wait_for_state(requeued.jobs[0], "PENDING")
        assert users.cluster.wait_for_state(requeued.jobs[1], "PENDING")["Reason"] == "Dependency"
        requeued.user.run("stk", "requeue", first.run_id)
        yield made
    finally:
        for each in made.values():
            each.user.run("scancel", *each.jobs)


def moved(run: RunDir) -> list[list[str]]:
    """The jobs that were taken along, each time that the run went on in a new job."""
    return [line["jobs"] for line in events(run, "dependants")]


def test_the_second_run_starts_after_the_final_success_of_the_first(chains: dict[str, Chain]) -> None:
    requeued = chains["requeued"]
    first, second = requeued.runs
    requeued.user.wait_until_finished(second, requeued.jobs[1])
    assert [start["why"] for start in starts(first)] == ["requested", "finished"]
    (only,) = starts(second)
    assert only["time_start"] >= first.result.stat().st_mtime


def test_run_that_continues_in_a_new_job_moves_its_dependants_there(chains: dict[str, Chain]) -> None:
    """Both runs are killed once and chained; the evaluation of the second is moved as the second was."""
    chained = chains["chained"]
    first, second = chained.runs
    assert chained.user.wait_for_end(chained.evaluation) == "COMPLETED"
    assert "scored" in (second.logs / f"{chained.evaluation}.evaluate.log").read_text()
    assert [moved(run) for run in chained.runs] == [[[chained.jobs[1]]], [[chained.evaluation]]]
    assert [chained.user.wait_for_end(job) for job in chained.jobs] == ["FAILED", "FAILED"]
    assert second.result.exists()
    assert starts(second)[0]["time_start"] >= first.result.stat().st_mtime


def test_after_a_failure_the_second_job_leaves_the_queue_and_never_runs(chains: dict[str, Chain]) -> None:
    failed = chains["failed"]
    assert failed.user.wait_for_end(failed.jobs[0]) == "FAILED"
    assert failed.user.wait_for_end(failed.jobs[1]) == "CANCELLED"
    assert failed.user.wait_for_end(failed.evaluation) == "CANCELLED"
    second = failed.runs[1]
    assert starts(second) == []
    assert f"{failed.runs[0].run_id}, which it waited for, failed" in str(why_not_begun(second))
