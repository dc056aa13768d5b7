"""What the driver needs to know about a tool."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tools.start import Start


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The time at which step `step` was done, and the name of its start."""

    step: int
    time: float
    start: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """The arguments of a submission, for the first one and for later ones."""

    folder: Path
    partition: str
    minutes: int
    step_ms: int


class Tool(Protocol):
    """What the driver needs to know about a tool."""

    name: str
    label: str
    """With its version, for the table."""

    def submit(self, submission: Submission) -> str:
        """Submit the run, or submit it again; return the job's id."""

    def current_job(self, folder: Path, job_id: str) -> str:
        """Return the current job of a run that was submitted as `job_id`: a tool may submit more jobs."""

    def steps(self, folder: Path) -> list[Step]:
        """Return the steps that the run has recorded, in order; repeated steps twice."""

    def ranks(self, folder: Path) -> dict[int, int]:
        """Return the process ids of the newest start, by rank."""

    def starts(self, folder: Path) -> list[Start]:
        """Return the starts of the run, in order."""

    def checkpoints(self, folder: Path) -> Path:
        """Return the folder of checkpoints."""

    def damageable(self, folder: Path) -> Path:
        """Return the file with the weights in the checkpoint from which a restart resumes."""

    def drop_newest(self, folder: Path) -> None:
        """Remove that checkpoint, as a person does with an unreadable one."""

    def digest(self, folder: Path) -> str | None:
        """Return the checksum of the final weights; None if the run has not finished."""


def json_lines(file: Path) -> list[dict[str, Any]]:
    """Return the complete lines of a file that may still grow; none if it does not exist."""
    text = file.read_text() if file.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
