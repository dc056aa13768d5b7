"""Failures of all steps on one screen: place, message, and the command that repeats each alone."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

#: So many are shown with place and message; the others with their command alone.
_IN_FULL = 8
_WIDTH = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What failed. place: FILE:LINE, where known. repeat: a command for the shell."""

    place: str
    message: str
    repeat: str


def write_failures(path: Path, reports: Sequence[Any], repeat: str) -> None:
    """Write what pytest says of failed tests, a JSON object a line.

    repeat  the command that runs one test, but for its name
    """
    failures = [_failure(report, repeat) for report in reports]
    path.write_text("".join(json.dumps(asdict(each)) + "\n" for each in failures), encoding="utf-8")


def read_failures(path: Path) -> list[Failure]:
    """What `write_failures` has written; nothing if pytest ended before that."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [Failure(**json.loads(line)) for line in text.splitlines()]


def render(failures: Sequence[Failure]) -> str:
    """The screen, empty if nothing has failed."""
    if not failures:
        return ""
    count = "1 failure" if len(failures) == 1 else f"{len(failures)} failures"
    lines = [f" {count} ".center(_WIDTH, "─")]
    for failure in failures[:_IN_FULL]:
        first = next(iter(failure.message.splitlines()), "")
        lines += [failure.place, f"    {first[: _WIDTH - 4]}", f"    {failure.repeat}"]
    lines += [failure.repeat for failure in failures[_IN_FULL:]]
    return "\n".join(lines)


def _failure(report: Any, repeat: str) -> Failure:
    crash = getattr(report.longrepr, "reprcrash", None)
    file = report.nodeid.partition("::")[0]
    line = _line_in(file, report.longrepr) or (report.location[1] or 0) + 1 if crash else 0
    message = crash.message if crash else str(report.longrepr or "").strip().rpartition("\n")[2]
    return Failure(
        place=f"{file}:{line}" if line else file,
        message=message,
        repeat=f"{repeat} {shlex.quote(report.nodeid)}",
    )


def _line_in(file: str, longrepr: Any) -> int:
    """The innermost line of the traceback that lies in the test's own file; 0 for none."""
    entries = getattr(getattr(longrepr, "reprtraceback", None), "reprentries", ())
    places = [entry.reprfileloc for entry in entries if getattr(entry, "reprfileloc", None)]
    return next((place.lineno for place in reversed(places) if str(place.path).endswith(file)), 0)
