"""One run that is preempted, comes back by itself, is cancelled and resumed: as if nothing had happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.cluster.product.user import EPOCHS, User, Users, slowly, starts
from tests.cluster.waiting import wait_until
from tests.toolkit.reliability.notifications.receiver import Receiver, receiving
from tests.toolkit.support.tiny import events
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir

from .requeue_cases import Case, assert_as_if_undisturbed

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The run, its two jobs, and what was there to see between them.

    cancelled   the steps of the checkpoints right after it was cancelled
    told        what its webhook received, on the login node
    """

    user: User
    run: RunDir
    first_job: str
    second_job: str
    cancelled: list[int]
    status_when_cancelled: dict[str, Any]
    record_when_cancelled: dict[str, str]
    told: list[dict[str, Any]]


@pytest.fixture(scope="module")
def story(users: Users) -> Story:
    with receiving(address=users.cluster.login_address) as receiver:
        return _live_through(users.user("stopped"), receiver)


def _live_through(user: User, receiver: Receiver) -> Story:
    alone = ("resources.nodes=2", "resources.gres=gpu:4", "resources.partition=preemptible")
    webhook = ("resources.webhook_env=HOOK_URL", "resources.webhook_events=[end,failure,hold,requeue]")
    environ = {"HOOK_URL": receiver.url}
    env = environ | slowly(0.12, attempts=(1, 2))
    run, first_job = user.submit("long", *alone, *webhook, env=env)
    user.wait_for_step(run)
    _preempt_one_host(user, run, first_job)
    user.wait_for_step(run)
    user.run("stk", "cancel", run.run_id)
    user.wait_for_end(first_job)
    cancelled = run.checkpoint_steps()
    status = user.status(run)
    record = user.cluster.job(first_job)
    second_job = user.stk_json("resume", run.run_id, env=environ)["job_id"]
    user.wait_until_finished(run, second_job)
    return Story(
        user=user,
        run=run,
        first_job=first_job,
        second_job=second_job,
        cancelled=cancelled,
        status_when_cancelled=status,
        record_when_cancelled=record,
        told=receiver.messages,
    )


def _preempt_one_host(user: User, run: RunDir, job_id: str) -> None:
    urgent = user.preempt(starts(run)[0]["hosts"][1])
    wait_until(
        lambda: user.cluster.job(job_id)["Restarts"] == "1",
        lambda: f"{user.cluster.job(job_id)}\n{user.story(run)}",
    )
    assert user.wait_for_end(urgent) == "COMPLETED"


def test_no_step_is_lost_repeated_or_changed(story: Story, long_alone: RunDir) -> None:
    assert_as_if_undisturbed(Case(story.user, story.run, story.second_job), long_alone)


def test_cancelled_run_saves_and_is_not_requeued(story: Story) -> None:
    second = starts(story.run)[1]
    assert story.cancelled[-1] == second["last_step"]
    assert len(events(story.run, "cancelled")) == 1
    record = story.record_when_cancelled
    assert (record["JobState"], record["Restarts"]) == ("CANCELLED", "1")
    assert story.status_when_cancelled["state"] == "cancelled"
    assert story.status_when_cancelled["step"] == second["last_step"]


def test_a_resumed_run_is_a_new_job_on_the_same_resources(story: Story) -> None:
    third = starts(story.run)[2]
    assert third["nonce"] == f"{story.second_job}.0.0"
    assert story.user.cluster.job(story.second_job)["Partition"] == "preemptible"
    status = story.user.status(story.run)
    assert (status["state"], status["job_id"], status["restarts"]) == ("finished", story.second_job, 2)
    assert read_json(story.run.result)["attempts"] == 3


def test_webhook_is_told_of_requeue_and_end_but_not_of_cancellation(story: Story) -> None:
    requeue, end = story.told
    last_step = 10 * EPOCHS["long"]
    assert (requeue["event"], requeue["reason"], requeue["job"]) == ("requeue", "preempted", story.first_job)
    assert (end["event"], end["job"], end["step"]) == ("end", story.second_job, last_step)
    assert f"{story.run.run_id} has finished at step {last_step}" in end["text"]
    scripts = story.run.submitit.glob("*.sh")
    recorded = [story.run.config, story.run.job, story.run.events, *scripts, *story.run.logs.iterdir()]
    assert not any("very-secret" in file.read_text() for file in recorded)


def test_report_accounts_for_every_wait_and_advises_on_unused_gpus(story: Story) -> None:
    """Submitted, put back by a preemption, cancelled and resumed by hand: only then was nobody asking."""
    report = story.user.stk_json("report", story.run.run_id)[0]
    first, second, third = report["starts"]
    assert min(start["waiting"] for start in report["starts"]) > 0
    assert first["away"] == second["away"] == 0 < third["away"]
    assert {start["repeated"] for start in report["starts"]} == {0}
    parts = ("training", "starting", "saving", "finishing", "waiting", "away")
    lived = third["end"] - first["begin"] + first["waiting"]
    assert sum(start[part] for start in report["starts"] for part in parts) == pytest.approx(lived)
    assert "GPUs" in [each["topic"] for each in report["advice"]]
