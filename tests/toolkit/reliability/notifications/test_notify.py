"""A run sends each event to its webhook once, and an error in doing so never ends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.reliability.notifications.receiver import closed_address, receiving
from tests.toolkit.support.tiny import events, tiny
from toolkit.files import append_json_line, write_json
from toolkit.reliability.notifications.notify import notify
from toolkit.run.create_run import create_run
from toolkit.run.failure.records import failure_record
from toolkit.run.run_dir import RunDir

HOOK = "HOOK_URL"


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    overrides = (f"resources.webhook_env={HOOK}", "resources.webhook_events=[end,failure,hold,requeue]")
    run = create_run(tiny(tmp_path, *overrides), tmp_path)
    starts(run, 1)
    return run


def starts(run: RunDir, number: int) -> None:
    append_json_line(run.attempts, {"attempt": number, "job_id": "101", "nonce": f"101.0.{number}"})


def sent(run: RunDir, what: str, reason: str = "") -> dict[str, Any]:
    """The message that an event of the run sends."""
    with receiving() as receiver:
        notify(run, what, reason, environ={HOOK: receiver.url})
    (message,) = receiver.messages
    return message


def test_the_message_of_an_end_has_the_scores(run: RunDir) -> None:
    metrics = {"train": {"loss": 0.5}, "test": {"loss": float("inf"), "accuracy": 0.875}}
    run.result.write_text(json.dumps({"step": 16, "epoch": 2.0, "metrics": metrics}))
    message = sent(run, "end")
    assert message["text"] == f"{run.run_id} has finished at step 16 (test_accuracy 0.875)"
    assert message["metrics"] == {"train_loss": 0.5, "test_accuracy": 0.875}
    assert (message["state"], message["step"], message["job"]) == ("finished", 16, "101")


def test_the_message_of_a_failure_names_the_first_failing_rank(run: RunDir) -> None:
    facts = {"rank": 3, "host": "w2", "phase": "forward", "step": 7}
    write_json(run.failure, failure_record("n", "exception", "KeyError: 'x'\nmore of it", **facts))
    write_json(run.progress, {"attempt": 1, "step": 4})
    append_json_line(run.attempts, {"attempt": 1, "last_step": 6})
    message = sent(run, "failure")
    assert message["step"] == 6
    assert message["text"] == f"{run.run_id} has failed at step 6: rank 3 on w2: KeyError: 'x'"
    assert (message["state"], message["reason"]) == ("failed", "rank 3 on w2: KeyError: 'x'")


def test_the_text_escapes_slack_commands_in_the_reason(run: RunDir) -> None:
    """Slack reads <!channel> as an order; the reason beside the text stays as it is."""
    message = sent(run, "hold", "bad <!channel> & more")
    assert message["text"].endswith("is held: bad &lt;!channel&gt; &amp; more")
    assert message["reason"] == "bad <!channel> & more"


def test_each_event_is_sent_once_in_an_attempt_and_the_end_once_in_a_run(run: RunDir) -> None:
    """Rank 0 and the batch script may both want to; and a job that had finished may be started again."""
    with receiving() as receiver:
        for _ in range(2):
            notify(run, "requeue", "preempted", environ={HOOK: receiver.url})
        starts(run, 2)
        for what in ("requeue", "end", "end"):
            notify(run, what, "preempted", environ={HOOK: receiver.url})
        starts(run, 3)
        notify(run, "end", environ={HOOK: receiver.url})
    assert [message["event"] for message in receiver.messages] == ["requeue", "requeue", "end"]
    assert [event["what"] for event in events(run, "notified")] == ["requeue", "requeue", "end"]


def test_unselected_events_are_not_sent(tmp_path: Path) -> None:
    with receiving() as receiver:
        for overrides in ((), (f"resources.webhook_env={HOOK}", "resources.webhook_events=[failure]")):
            run = create_run(tiny(tmp_path, *overrides), tmp_path / str(len(overrides)))
            notify(run, "end", environ={HOOK: receiver.url})
            assert not run.events.exists()
    assert receiver.messages == []


@pytest.mark.parametrize(
    "environ, reason", [({}, f"{HOOK} is not set here"), ({HOOK: closed_address()}, "it cannot be reached")]
)
def test_a_failed_message_is_recorded_once_without_the_address(
    run: RunDir, caplog: pytest.LogCaptureFixture, environ: dict[str, str], reason: str
) -> None:
    notify(run, "end", environ=environ)
    notify(run, "end", environ=environ)
    (event,) = events(run, "not_notified")
    assert event["reason"].startswith(reason)
    assert len(caplog.records) == 1
    assert "secret" not in run.events.read_text() + caplog.text


def test_a_damaged_config_is_recorded_and_does_not_raise(run: RunDir) -> None:
    run.config.write_text("{")
    notify(run, "end", environ={HOOK: "http://x/very-secret"})
    (event,) = events(run, "not_notified")
    assert event["reason"] == "ConfigError"


def test_the_address_is_recorded_nowhere(run: RunDir) -> None:
    sent(run, "end")
    files = [path for path in run.path.rglob("*") if path.is_file() and run.code not in path.parents]
    assert [path for path in files if b"very-secret" in path.read_bytes()] == []
