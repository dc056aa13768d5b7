"""Notifications to the webhook of a run, each sent once. A failure here never affects the run."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from toolkit.config import load_submitted
from toolkit.reliability.notifications.message import message
from toolkit.run.attempts.records import read_attempts
from toolkit.run.events import note_event, read_events
from toolkit.run.run_dir import RunDir

#: In events.jsonl.
NOTIFIED, NOT_NOTIFIED = "notified", "not_notified"

log = logging.getLogger("toolkit")


def notify(run: RunDir, what: str, reason: str = "", environ: Mapping[str, str] = os.environ) -> None:
    """Post an event to the webhook if one is configured for it; record that it was sent, or why not.

    what     end, failure, hold or requeue
    environ  environment variables, which hold the address

    An end is sent once; the other events once in each attempt. Never raises, and returns within some seconds.
    """
    try:
        problem = _notify(run, what, reason, environ)
    except Exception as error:
        # Not the message: it may contain the address.
        problem = type(error).__name__
    if problem is not None:
        log.warning("the webhook was not notified of %s: %s", what, problem)
        _note(run, NOT_NOTIFIED, what, reason=problem)


def _notify(run: RunDir, what: str, reason: str, environ: Mapping[str, str]) -> str | None:
    """Return the error of a notification; None if there was none, or nothing to send."""
    policy = load_submitted(run.config, run.job).policy
    if policy.webhook_env is None or what not in policy.webhook_events or _is_recorded(run, what):
        return None
    url = environ.get(policy.webhook_env)
    if not url:
        return f"{policy.webhook_env} is not set here"
    # Imported late: the HTTP modules are slow to import, and most runs have no webhook.
    from toolkit.reliability.notifications.webhook import post

    problem = post(url, message(run, what, reason))
    if problem is None:
        _note(run, NOTIFIED, what)
    return problem


def _is_recorded(run: RunDir, what: str) -> bool:
    key = _key(run, what)
    sent = read_events(run, NOTIFIED, NOT_NOTIFIED)
    return any((event.facts.get("what"), event.facts.get("attempt")) == key for event in sent)


def _key(run: RunDir, what: str) -> tuple[str, Any]:
    attempts = read_attempts(run)
    return what, None if what == "end" else (attempts[-1].attempt if attempts else 0)


def _note(run: RunDir, event: str, what: str, **facts: Any) -> None:
    note_event(run, event, what=what, attempt=_key(run, what)[1], **facts)
