"""events.jsonl: events of a run, with times."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from toolkit.files import append_json_line, parsed, read_end, read_json_lines
from toolkit.run.records.from_json import KEY, from_json
from toolkit.run.run_dir import RunDir
from toolkit.system.output.sanitize import number

#: Resumption from these checkpoints was forced (`stk resume --force`).
FORCED = "forced"

#: Enough for some dozens of events.
_TAIL_BYTES = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event: its name, its time in seconds since 1970 (0 if unknown), and all facts of its line."""

    name: str
    time: float
    facts: Mapping[str, Any]

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Event:
        return cls(name=str(line.get("event", "unknown")), time=number(line.get("time")) or 0.0, facts=line)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveEvent:
    """A checkpoint has been written; `time` is the end of the write.

    seconds   from the copy to the end of the write; paused_s: the writer's pauses in them
    stall_s   pause of training; waited_s: its additional wait for the previous save
    write_s   duration of writing the files
    """

    time: float = 0.0
    seconds: float | None = None
    paused_s: float = 0.0
    stall_s: float = 0.0
    waited_s: float = 0.0
    write_s: float = 0.0
    bytes: int = 0

    @property
    def work_s(self) -> float | None:
        """`seconds` without the pauses; None if unknown."""
        return None if self.seconds is None else self.seconds - self.paused_s


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureEvent:
    """A rank has recorded a failure; `samples` are those of its micro-batch."""

    time: float = 0.0
    nonce: str = ""
    rank: int | None = None
    step: int | None = None
    kind: str = field(default="", metadata={KEY: "class"})
    samples: tuple[int, ...] = ()


def note_event(run: RunDir, event: str, **facts: Any) -> None:
    """Append one event. A full disk does not fail the run."""
    with suppress(OSError):
        append_json_line(run.events, {"time": time.time(), "event": event, **facts})


def read_events(run: RunDir, *names: str) -> Iterator[Event]:
    """The events of these names, oldest first; all events if no name is given."""
    events = map(Event.from_line, read_json_lines(run.events))
    return (event for event in events if not names or event.name in names)


def forced_steps(run: RunDir) -> set[int]:
    """Checkpoints from which resumption was forced (`stk resume --force`)."""
    return {step for event in read_events(run, FORCED) for step in event.facts.get("steps", ())}


def save_events(run: RunDir) -> Iterator[SaveEvent]:
    """The saves of a run, oldest first."""
    return (from_json(SaveEvent, event.facts) for event in read_events(run, "save"))


def failure_events(run: RunDir) -> Iterator[FailureEvent]:
    """The failures that ranks of a run recorded, oldest first."""
    return (from_json(FailureEvent, event.facts) for event in read_events(run, "failure"))


def last_events(run: RunDir, tail_bytes: int = _TAIL_BYTES) -> list[Event]:
    """The events in the last bytes of the file, oldest first; none if it cannot be read."""
    lines = map(parsed, read_end(run.events, tail_bytes).splitlines())
    return [Event.from_line(line) for line in lines if isinstance(line, dict)]
