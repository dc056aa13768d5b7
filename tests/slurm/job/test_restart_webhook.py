"""What the webhook is told of the end of a step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.pretend_job import PretendJob
from tests.slurm.support.user import User
from tests.toolkit.reliability.notifications.receiver import Receiver, closed_address, receiving


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiving() as receiver:
        monkeypatch.setenv("HOOK_URL", receiver.url)
        yield receiver


def with_webhook(fake: FakeSlurm, user: User, *overrides: str) -> PretendJob:
    events = "resources.webhook_events=[end,failure,hold,requeue]"
    return PretendJob(fake, user, "resources.webhook_env=HOOK_URL", events, *overrides)


def test_failure_of_user_code_ends_the_run_and_the_webhook_is_told_once(
    fake: FakeSlurm, user: User, told: Receiver
) -> None:
    job = with_webhook(fake, user)
    job.starts()
    job.failure("exception")
    assert "not started again" in job.after(1)
    job.after(1)
    assert (job.requeues, job.submitted, job.outcome) == ([], ["101"], "not_requeued")
    (message,) = told.messages
    found = (message["event"], message["job"], message["reason"])
    assert found == ("failure", "101", "exception, rank 0 on here, at step 3")


def test_webhook_is_told_of_a_requeue_after_a_failure(fake: FakeSlurm, user: User, told: Receiver) -> None:
    job = with_webhook(fake, user)
    job.starts()
    job.failure("io")
    job.after(1)
    assert [message["event"] for message in told.messages] == ["requeue"]


def test_webhook_is_told_of_a_held_run(fake: FakeSlurm, user: User, told: Receiver) -> None:
    job = with_webhook(fake, user)
    for _ in range(3):
        job.starts(time_end=1500.0, last_step=0, why="preempted")
    job.after(75)
    (message,) = told.messages
    assert (message["event"], message["state"]) == ("hold", "held")
    assert "3 attempts in a row made no step" in message["reason"]


def test_cancelled_job_is_not_requeued_and_the_webhook_not_told(
    fake: FakeSlurm, user: User, told: Receiver
) -> None:
    job = with_webhook(fake, user)
    job.stops("SIGTERM")
    job.is_cancelled()
    job.after(75)
    assert told.messages == []
    assert (job.requeues, job.submitted, job.why) == ([], ["101"], "cancelled")


def test_infrastructure_failure_requeues_the_job_even_if_the_webhook_fails(
    fake: FakeSlurm, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = with_webhook(fake, user)
    monkeypatch.setenv("HOOK_URL", closed_address())
    job.starts()
    job.failure("io")
    assert "starting again" in job.after(1)
    assert (job.requeues, job.why) == ([["requeue", "101"]], "io")
    (event,) = job.events("not_notified")
    assert event["what"] == "requeue"
