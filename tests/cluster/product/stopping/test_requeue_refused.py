"""Jobs that may not go back into the queue, also uneven ones, that are elastic, or put back unheard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.product.user import User, Users, host_numbers, starts, weights
from toolkit.files import read_json_lines
from toolkit.run.run_dir import RunDir

from .requeue_cases import Case, assert_as_if_undisturbed, host, submit, under_way

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cases(users: Users) -> Iterator[dict[str, Case]]:
    """All runs of this file, each after its interruption; they are still running."""
    uneven = "groups=[{nodes: 1, gpus: 0}, {nodes: 1, gpus: 0}]"
    cases = {
        "refused": submit(users, "refused", "partition=preemptible", host(users, 2), "gres=gpu:4"),
        "uneven, refused": submit(users, "unevenly", uneven),
        "unanswered": submit(users, "unanswered", uneven, is_heard=False),
        # Two minutes are not enough for all its steps.
        "same job": submit(users, "same", "time=2", "requeue=same_job"),
    }
    with under_way(users, cases, unwatched=("same job",)):
        # As a site does that lets no job go back; its owner may do it too.
        for case in (cases["refused"], cases["uneven, refused"]):
            case.user.run("scontrol", "update", f"jobid={case.job_id}", "requeue=0")
        cases["refused"].preempt()
        for case in (cases["uneven, refused"], cases["unanswered"]):
            assert "asked to save" in case.user.run("stk", "requeue", case.run.run_id).stdout
        cases["refused"].wait_until_stopped()
        yield cases


@pytest.mark.parametrize("name", ["refused", "uneven, refused", "unanswered", "same job"])
def test_interrupted_run_ends_as_if_undisturbed(
    cases: dict[str, Case], long_alone: RunDir, name: str
) -> None:
    assert_as_if_undisturbed(cases[name], long_alone)


def test_run_is_submitted_again_if_requeueing_is_disabled(cases: dict[str, Case]) -> None:
    case = cases["refused"]
    case.finish()
    assert case.whys[0] == "preempted"
    (chained,) = case.events("chained")
    second = starts(case.run)[1]
    assert second["job_id"] == chained["next_job_id"] != case.job_id
    assert [line["job_id"] for line in read_json_lines(case.run.submissions)] == [
        case.job_id,
        chained["next_job_id"],
    ]
    assert case.user.status(case.run)["job_id"] == chained["next_job_id"]


def test_requeue_same_job_keeps_the_job_id_across_time_limits(cases: dict[str, Case]) -> None:
    case = cases["same job"]
    case.finish()
    assert set(case.whys[:-1]) == {"time_limit"}
    assert {start["job_id"] for start in starts(case.run)} == {case.job_id}
    assert not case.events("chained")


def test_uneven_job_that_may_not_be_requeued_is_submitted_again(cases: dict[str, Case]) -> None:
    case = cases["uneven, refused"]
    case.finish()
    assert case.whys == ["requested", "finished"]
    (chained,) = case.events("chained")
    assert [start["job_id"] for start in starts(case.run)] == [case.job_id, chained["next_job_id"]]
    assert [len(start["hosts"]) for start in starts(case.run)] == [2, 2]


def test_requeued_job_that_got_no_answer_is_not_submitted_again(cases: dict[str, Case]) -> None:
    case = cases["unanswered"]
    case.finish()
    assert case.whys == ["requested", "finished"]
    assert [start["job_id"] for start in starts(case.run)] == [case.job_id] * 2
    assert [len(start["hosts"]) for start in starts(case.run)] == [2, 2]
    assert not case.events("chained", "dependants")


def test_an_elastic_job_starts_on_the_hosts_that_are_free(
    users: Users, user: User, quick_alone: RunDir
) -> None:
    blocker = user.sbatch("--nodes=2", "--gres=gpu:4", "--time=5", "--wrap=sleep 60")
    users.cluster.wait_for_state(blocker, "RUNNING")
    overrides = ("resources.nodes=1-4", "resources.gres=gpu:4")
    run, job_id = user.submit("quick", *overrides)
    user.wait_until_finished(run, job_id)
    user.run("scancel", blocker)
    assert starts(run)[0]["world_size"] == 2
    assert host_numbers(run) == [0, 1]
    assert weights(run) == weights(quick_alone)
