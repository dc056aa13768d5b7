"""events.jsonl: what happened to a run, with times."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from toolkit.files import append_json_line
from toolkit.rundir import RunDir

#: Somebody wants the run to go on from these checkpoints, whatever experiment and data they belong to.
FORCED = "forced"


def note_event(run: RunDir, event: str, **facts: Any) -> None:
    """Append one event. A record for people: a full disk must not end the run for it."""
    with suppress(OSError):
        append_json_line(run.events, {"time": time.time(), "event": event, **facts})
