"""Advice on a run: every figure that lies beyond its bound, with the key to change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from slurm.runs.advice.machines import cpu_advice, gpu_advice, limit_advice, memory_advice
from slurm.runs.advice.requested import Resources
from slurm.runs.advice.runtime_advice import course_advice
from slurm.submissions import last_submission
from toolkit.errors import UserError
from toolkit.report import Advice, RunSummary
from toolkit.run.run_dir import RunDir


def advise(run: RunDir, summary: RunSummary) -> list[Advice]:
    """Return what to change, the most telling first; nothing for a run that has not begun.

    What was asked for counts only where a scheduler gave it. A folder that cannot be read gives no advice.
    """
    if not summary.starts:
        return []
    found = list(course_advice(summary))
    # What was asked for in no known notation is the submission's trouble, not the report's.
    with suppress(UserError, ValueError, TypeError, AttributeError):
        found[:0] = _on_resources(summary, _given(run, summary))
    return found


def _given(run: RunDir, summary: RunSummary) -> Resources | None:
    """The resources that a scheduler gave; None for a run on this machine."""
    try:
        submission = last_submission(run)
    except (OSError, LookupError):
        return None
    return summary.resources if submission and submission.cluster == "slurm" else None


def _on_resources(summary: RunSummary, resources: Resources | None) -> Iterator[Advice]:
    yield from gpu_advice(summary, resources)
    if resources is not None:
        yield from memory_advice(summary, resources)
        yield from cpu_advice(summary, resources)
        yield from limit_advice(summary, resources)
