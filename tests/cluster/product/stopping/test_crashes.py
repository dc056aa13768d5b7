"""Ranks that die: the run restarts in its job without a wait and ends as if undisturbed."""

from __future__ import annotations

import pytest

from tests.cluster.product.user import User, assert_same_training, starts
from tests.toolkit.support.tiny import events
from toolkit.run.run_dir import RunDir


def test_run_restarts_in_its_job_after_a_rank_was_killed(user: User, quick_alone: RunDir) -> None:
    run, job_id = user.submit(
        "quick", "resources.nodes=2", env={"STK_FAULTS": "kill at=forward step=5 rank=1 attempt=1"}
    )
    user.wait_until_finished(run, job_id)
    first, second = starts(run)
    assert [(start["job_id"], start["restart"]) for start in (first, second)] == [(job_id, 0)] * 2
    assert (first["why"], second["why"]) == ("killed", "finished")
    assert first["hosts"] == second["hosts"]
    assert [event["attempt"] for event in events(run, "started_in_place")] == [1]
    assert not events(run, "requeue", "chained")
    assert_same_training(run, quick_alone)
    status = user.status(run)
    assert (status["state"], status["job_id"], status["restarts"]) == ("finished", job_id, 1)


@pytest.mark.slow
def test_run_fails_after_max_crashes(user: User) -> None:
    """Each attempt is killed at its second step: none of them comes further than the one before."""
    run, job_id = user.submit(
        "quick", "resources.max_crashes=1", env={"STK_FAULTS": "kill at=forward step=2"}
    )
    assert user.wait_for_end(job_id) == "FAILED"
    assert [start["restart"] for start in starts(run)] == [0, 0]
    (refusal,) = events(run, "not_requeued")
    assert "failure 2, and resources.max_crashes allows 1" in str(refusal["why"])
    assert user.status(run)["state"] == "failed"
