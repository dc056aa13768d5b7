"""attempts.jsonl: one line for each attempt of a run, completed as more becomes known."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from toolkit.files import read_json_lines, write_atomic
from toolkit.run.failure.classes import FAILURE_CLASSES
from toolkit.run.records.from_json import from_json, whole
from toolkit.run.run_dir import RunDir
from toolkit.system.output.sanitize import number


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """The record of one attempt; None for what is unknown or has not happened yet.

    precision        as in train.precision, but never auto
    process_start, time_start, time_end   seconds since 1970
    first_step_after_start_s   from time_start to the end of the first step; first_step_s: from process_start
    trained_after_start_s   to the end of its training; when it was ready if no step was left to do
    resumed          whether it continued from a checkpoint; set when training starts
    saved            whether it has saved, if steps do not show that
    wrote            whether it wrote files in its work folder, from which a program may be able to continue
    step_s, save_s   of a typical step and save; exact_s, exact_share: of exact reduction in a step
    why              `finished`, why it was stopped, or a failure class
    host, rank, step, blamed   of the failure; blamed is the suspect host
    concluded        whether its end needs no further explanation
    """

    attempt: int
    job_id: str | None = None
    restart: int = 0
    nonce: str = ""
    hosts: tuple[str, ...] = ()
    world_size: int | None = None
    device: str | None = None
    precision: str | None = None
    process_start: float | None = None
    time_start: float | None = None
    first_step: int | None = None
    resumed: bool | None = None
    saved: bool | None = None
    wrote: bool | None = None
    first_step_s: float | None = None
    first_step_after_start_s: float | None = None
    trained_after_start_s: float | None = None
    step_s: float | None = None
    save_s: float | None = None
    exact_s: float | None = None
    exact_share: float | None = None
    time_end: float | None = None
    last_step: int | None = None
    why: str | None = None
    host: str | None = None
    rank: int | None = None
    step: int | None = None
    blamed: str | None = None
    concluded: bool = False

    def includes(self, step: int) -> bool:
        """Whether the attempt computed a step (counted from 1), as far as is known."""
        if self.first_step is None or self.first_step >= step:
            return False
        return self.last_step is None or step <= self.last_step

    @property
    def began(self) -> float:
        """`time_start` of an attempt that has one."""
        assert self.time_start is not None
        return self.time_start

    @property
    def seconds(self) -> float:
        """Return its duration; 0 while its end is unknown."""
        if self.time_start is None or self.time_end is None:
            return 0.0
        return max(0.0, self.time_end - self.time_start)

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> AttemptRecord:
        """The record of an attempt's merged lines."""
        if "blamed" not in line and (kind := FAILURE_CLASSES.get(str(line.get("why")))):
            # Earlier versions did not record it.
            line = {**line, "blamed": line.get("host") if kind.blames_host else None}
        return from_json(cls, line)


def read_attempts(run: RunDir) -> list[AttemptRecord]:
    """The attempts of a run, oldest first."""
    return attempt_records(read_json_lines(run.attempts))


def attempt_records(lines: Iterable[Mapping[str, Any]]) -> list[AttemptRecord]:
    """The attempts that lines of attempts.jsonl describe, oldest first."""
    return [AttemptRecord.from_line(line) for line in _merged(lines)]


def steps_done(progress: Mapping[str, Any], last: AttemptRecord | None) -> int | None:
    """The steps of an unfinished run; None if unknown. A failed attempt's last step is not in progress.json.

    progress   contents of progress.json
    last       the newest attempt
    """
    steps = (whole(progress.get("step")), None if last is None else last.last_step)
    return max((each for each in steps if each is not None), default=None)


def _merged(lines: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """One line for each attempt: later lines complete the earlier ones."""
    attempts: dict[int, Mapping[str, Any]] = {}
    for line in lines:
        if isinstance(number(line.get("attempt")), int) and isinstance(line.get("nonce", ""), str):
            known = attempts.get(line["attempt"])
            attempts[line["attempt"]] = {**known, **line} if known else line
    return [attempts[each] for each in sorted(attempts)]


def explain_last(run: RunDir, why: str, **facts: Any) -> None:
    """Record why the newest attempt ended, if more is known than it could record itself."""
    if attempts := read_attempts(run):
        amend(run, {"attempt": attempts[-1].attempt, "why": why, **facts})


def amend(run: RunDir, line: Mapping[str, Any]) -> None:
    """Update the line of an attempt, or add it. A full disk does not fail the run."""
    lines = _merged([*read_json_lines(run.attempts), line])
    with suppress(OSError):
        write_atomic(run.attempts, "".join(json.dumps(each) + "\n" for each in lines))
