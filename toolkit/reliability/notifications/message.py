"""The message to a webhook: one sentence, which Slack and similar services show, and the facts."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Mapping
from typing import Any

from toolkit.files import read_json
from toolkit.run.attempts.records import read_attempts
from toolkit.run.records.failures import FailureRecord
from toolkit.run.records.from_json import from_json
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


def message(run: RunDir, what: str, reason: str) -> dict[str, Any]:
    """The JSON that is posted. what: one of end, failure, hold, requeue."""
    result = read_json(run.result) if what == "end" else None
    progress = result or read_json(run.progress) or {}
    attempts = read_attempts(run)
    last = attempts[-1] if attempts else None
    step = progress.get("step", last and last.last_step)
    metrics = _flat(progress.get("metrics") or {})
    reason = str(clean(reason or _failure(run)))[:_LONGEST_REASON]
    facts = {
        "run_id": run.run_id,
        "run_dir": str(run.path),
        "event": what,
        "state": _STATES[what],
        "step": step,
        "total_steps": progress.get("total_steps", step if what == "end" else None),
        "epoch": progress.get("epoch"),
        "metrics": metrics,
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


def _shown(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """The scores on test or, if there are none, on validation; else all numbers."""
    for split in _FIRST:
        if found := {n: v for n, v in metrics.items() if n.startswith(f"{split}_") and v is not None}:
            return found
    return {name: value for name, value in metrics.items() if value is not None}


def _flat(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """result.json has metrics by split, progress.json has them flat; JSON knows no NaN."""
    flat: dict[str, float | None] = {}
    for name, value in metrics.items():
        inner = value if isinstance(value, Mapping) else {"": value}
        for end, number in inner.items():
            if isinstance(number, int | float):
                flat[f"{name}_{end}".rstrip("_")] = float(number) if math.isfinite(number) else None
    return flat
