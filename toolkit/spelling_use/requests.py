"""What is asked of a run: which files, and how; known without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Lines to be read, and where a line for each of them goes.

    input       file; None: standard input
    output      file that appears when it is whole; None: standard output
    form        how a line is written: a name in OF_LABELS or OF_TEXTS
    detections  file of labels, a line for each: only what is marked there is corrected; "-": standard input
    detected    whether each line has its labels behind a tab
    """

    input: str | None = None
    output: str | None = None
    form: str
    detections: str | None = None
    detected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Jobs for one run.

    device        auto, cpu or cuda
    batch_tokens  padded tokens that the model reads at once; None: as many as there usually are
    threshold     probability above which something is an error
    options       of the task section of the run, in place of its own: search, beam_width
    progress      whether a bar is shown, on a terminal; None: unless the lines go there
    """

    jobs: tuple[Job, ...]
    device: str = "auto"
    batch_tokens: int | None = None
    threshold: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    progress: bool | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Request:
        return cls(**{**value, "jobs": tuple(Job(**job) for job in value["jobs"])})
