"""Requests to a run: the files to process, and how. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

#: The module of a run's code that answers a request.
MODULE = "toolkit.workloads.spelling.inference"
#: Its name in earlier versions.
EARLIER_MODULE = "toolkit.spelling_use"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A file of lines to process.

    input       file; None: standard input
    output      file, written atomically; None: standard output
    form        output format: a name in OF_LABELS or OF_TEXTS
    detections  file with the labels of each line, "-": standard input; only words labelled 1 are corrected
    detected    whether each line ends with a tab and its labels
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
    threshold     a higher probability is an error; None: the default
    options       keys of the run's task section to replace: search, beam_width
    progress      whether to show a bar on a terminal; None: only if lines are not written to it
    """

    jobs: tuple[Job, ...]
    device: str = "auto"
    batch_tokens: int | None = None
    threshold: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    progress: bool | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Request:
        value = json.loads(text)
        return cls(**{**value, "jobs": tuple(Job(**job) for job in value["jobs"])})
