"""Telling the webhook of a run's resources what happened, once. Nothing that goes wrong here hurts a run."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from toolkit.attempts.ledger import read_attempts
from toolkit.config import load_resolved, load_resources
from toolkit.config.schema import Resources
from toolkit.events import note_event
from toolkit.files import read_json_lines
from toolkit.notices.message import message
from toolkit.rundir import RunDir

#: In events.jsonl.
NOTIFIED, NOT_NOTIFIED = "notified", "not_notified"

log = logging.getLogger("toolkit")


def notify(run: RunDir, what: str, reason: str = "", environ: Mapping[str, str] = os.environ) -> None:
    """Tell the webhook, if there is one that wants to know, and note that it was told, or why not.

    what     end, failure, hold or requeue
    environ  where the address stands

    An end is told once; of what else may come again, once in each start. Never raises, and returns within
    some seconds.
    """
    try:
        problem = _notify(run, what, reason, environ)
    except Exception as error:
        # Not its words: they may hold the address.
        problem = type(error).__name__
    if problem is not None:
        log.warning("the webhook was not told of %s: %s", what, problem)
        _note(run, NOT_NOTIFIED, what, reason=problem)


def _notify(run: RunDir, what: str, reason: str, environ: Mapping[str, str]) -> str | None:
    """What went wrong; None where nothing did, or nothing was to be done."""
    resources = _resources(run)
    if resources.webhook_env is None or what not in resources.webhook_events or _is_told(run, what):
        return None
    url = environ.get(resources.webhook_env)
    if not url:
        return f"{resources.webhook_env} is not set here"
    # Late: what speaks HTTP takes long to import, and most runs have no webhook.
    from toolkit.notices.webhook import post

    problem = post(url, message(run, what, reason))
    if problem is None:
        _note(run, NOTIFIED, what)
    return problem


def _resources(run: RunDir) -> Resources:
    """Those of the last submission."""
    experiment = load_resolved(run.config)
    return load_resources(run.job, experiment) if run.job.exists() else experiment.resources


def _is_told(run: RunDir, what: str) -> bool:
    key = _key(run, what)
    return any(
        line.get("event") in (NOTIFIED, NOT_NOTIFIED) and _key_of(line) == key
        for line in read_json_lines(run.events)
    )


def _key(run: RunDir, what: str) -> tuple[str, Any]:
    attempts = read_attempts(run)
    return what, None if what == "end" else (attempts[-1]["attempt"] if attempts else 0)


def _key_of(line: Mapping[str, Any]) -> tuple[Any, Any]:
    return line.get("what"), line.get("attempt")


def _note(run: RunDir, event: str, what: str, **facts: Any) -> None:
    note_event(run, event, what=what, attempt=_key(run, what)[1], **facts)
