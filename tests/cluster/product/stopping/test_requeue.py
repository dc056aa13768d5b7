"""Ways in which Slurm takes a job's hosts away, and how the run goes on: as if nothing had happened."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.product.user import User, Users, starts
from tests.cluster.waiting import wait_until
from toolkit.run.run_dir import RunDir

from .requeue_cases import Case, assert_as_if_undisturbed, host, submit, under_way


@pytest.fixture(scope="module")
def cases(users: Users) -> Iterator[dict[str, Case]]:
    """All runs of this file, each after its interruption; they are still running."""
    two = "tasks_per_node=2"
    cases = {
        "grace": submit(users, "grace", "partition=preemptible", host(users, 0), "gres=gpu:4", two),
        "no grace": submit(users, "nograce", "partition=preemptible0", host(users, 1), "gres=gpu:4"),
        # Two minutes are not enough for all its steps.
        "chain": submit(users, "chain", "time=2"),
    }
    with under_way(users, cases, unwatched=("chain",)):
        for name in ("grace", "no grace"):
            cases[name].preempt()
        yield cases


@pytest.mark.parametrize("name", ["grace", "no grace", "chain"])
def test_interrupted_run_ends_as_if_undisturbed(
    cases: dict[str, Case], long_alone: RunDir, name: str
) -> None:
    assert_as_if_undisturbed(cases[name], long_alone)


@pytest.mark.parametrize("name, by", [("grace", "stk"), ("no grace", "slurm")])
def test_preempted_run_requeues_itself_if_it_has_grace(cases: dict[str, Case], name: str, by: str) -> None:
    """Slurm would not put back a job that leaves by itself within the grace period."""
    case = cases[name]
    case.finish()
    (requeue,) = case.events("requeue")
    assert (requeue["why"], requeue["by"], case.whys[0]) == ("preempted", by, "preempted")
    assert case.signals == ["SIGTERM"]
    assert [start["restart"] for start in starts(case.run)] == [0, 1]


def test_logs_of_both_attempts_and_of_the_job_are_listed_and_merged(cases: dict[str, Case]) -> None:
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


def test_job_submits_the_next_one_before_its_time_limit(cases: dict[str, Case]) -> None:
    case = cases["chain"]
    case.finish()
    assert set(case.whys[:-1]) == {"time_limit"}
    jobs = [start["job_id"] for start in starts(case.run)]
    assert len(set(jobs)) == len(jobs)
    assert {start["restart"] for start in starts(case.run)} == {0}
    assert not case.events("requeue")


@pytest.mark.slow
def test_finished_run_is_left_unchanged_when_slurm_restarts_its_job(user: User) -> None:
    run, job_id = user.submit("quick")
    user.wait_until_finished(run, job_id)
    before = run.result.read_bytes()
    user.run("scontrol", "requeue", job_id)
    wait_until(lambda: user.cluster.job(job_id)["Restarts"] == "1", lambda: str(user.cluster.job(job_id)))
    user.wait_until_finished(run, job_id)
    assert len(starts(run)) == 1
    assert run.result.read_bytes() == before
