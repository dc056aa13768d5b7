"""Requests to a run: which files, and how; imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

#: The module that answers a request, with a run's code.
MODULE = "toolkit.workloads.spelling.inference"
EARLIER_MODULE = "toolkit.spelling_use"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A file of lines to process.

    input       file; None: standard input
    output      file, written atomically; None: standard output
    form        output format: a name in OF_LABELS or OF_TEXTS
    detections  file of labels, one line each: only marked words are corrected; "-": standard input
    detected    whether each line ends in a tab and its labels
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
    batch_tokens  padded tokens in a batch; None: the default
    threshold     probability above which something is an error
    options       replace those of the run's task section: search, beam_width
    progress      whether to show a bar on a terminal; None: unless lines are written to it
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
