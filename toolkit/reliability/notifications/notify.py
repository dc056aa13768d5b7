"""Notifications to the webhook of a run, each sent once. A failure here never affects the run."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from toolkit.config import load_resolved
from toolkit.files import read_json, read_object
from toolkit.run.attempts.records import read_attempts, steps_done
from toolkit.run.events import note_event, read_events
from toolkit.run.records.failures import FailureRecord
from toolkit.run.records.from_json import from_json
from toolkit.run.records.headline import finite, flat_metrics
from toolkit.run.run_dir import RunDir
from toolkit.system.output.sanitize import clean

_STATES = {"end": "finished", "failure": "failed", "hold": "held", "requeue": "requeued"}
_PHRASES = {
    "end": "has finished",
    "failure": "has failed",
    "hold": "is held",
    "requeue": "is restarted automatically",
}
#: Longer reasons are in failure.json.
_LONGEST_REASON = 500
#: Splits whose scores are shown, in this order.
_FIRST = ("test", "validation")
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
    policy = load_resolved(run.config, run.job).policy
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


def message(run: RunDir, what: str, reason: str) -> dict[str, Any]:
    """The JSON that is posted. what: one of end, failure, hold, requeue."""
    result = read_json(run.result) if what == "end" else None
    progress = result or read_object(run.progress)
    attempts = read_attempts(run)
    last = attempts[-1] if attempts else None
    step = progress.get("step") if result else steps_done(progress, last)
    reason = str(clean(reason or _failure(run)))[:_LONGEST_REASON]
    facts = {
        "run_id": run.run_id,
        "run_dir": str(run.path),
        "event": what,
        "state": _STATES[what],
        "step": step,
        "total_steps": progress.get("total_steps", step if what == "end" else None),
        "epoch": progress.get("epoch"),
        "metrics": finite(flat_metrics(progress)),
        "reason": reason,
        "host": (last and last.host) or socket.gethostname(),
        "job": last and last.job_id,
        "attempt": last and last.attempt,
        "time": time.time(),
    }
    return {"text": _text(facts), **facts}


def _failure(run: RunDir) -> str:
    """Return the first failure and its place, in a line; empty without one."""
    failure = from_json(FailureRecord, read_json(run.failure) or {})
    return failure.summary if failure.message else ""


def _text(facts: Mapping[str, Any]) -> str:
    place = "" if facts["step"] is None else f" at step {facts['step']}"
    # A reason may contain Slack markup, such as <!channel>.
    reason = facts["reason"].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    tail = f": {reason}" if reason else ""
    scores = ", ".join(f"{name} {value:.4g}" for name, value in list(_shown(facts["metrics"]).items())[:3])
    return f"{facts['run_id']} {_PHRASES[facts['event']]}{place}{tail}" + (f" ({scores})" if scores else "")


def _shown(metrics: Mapping[str, float]) -> Mapping[str, float]:
    """The scores on test; without them those on validation; without both all numbers."""
    for split in _FIRST:
        if found := {n: v for n, v in metrics.items() if n.startswith(f"{split}_")}:
            return found
    return metrics
