"""Preparing data: what `stk prepare` does here, and what its job runs.

python -P -m slurm.preparing.preparation FOLDER

The job needs no signal to save: what it has done lies on the disk. After a preemption Slurm puts it back,
for it does not leave before it is made to. Before its time limit it asks for that, where it has done
something that its next start need not do again; else each start would end like this one.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from slurm import controller
from slurm.handover import PATIENCE_S, Job, why_of
from slurm.resources import signal_lead_s
from slurm.topology import scrub
from slurm.why import CANCELLED, TIME_LIMIT, WARNING, WARNING_SIGNAL, Seen, is_back
from toolkit import launch
from toolkit.config import load_resolved
from toolkit.config.kinds import EntityMentions, SpellingTexts, TextTable
from toolkit.config.schema import Experiment
from toolkit.data.prepared import Prepared, prepare
from toolkit.display import Lines
from toolkit.errors import StkError
from toolkit.files import write_json
from toolkit.mentions.prepared import MentionSet
from toolkit.mentions.prepared import prepare as prepare_mentions
from toolkit.rundir import RunDir
from toolkit.spelling_samples.build import STAGE as SHARDS
from toolkit.spelling_samples.prepared import SpellingSet
from toolkit.spelling_samples.prepared import prepare as prepare_texts

_Report = Callable[[str, int, int | None], None]
_SIGNAL = signal.Signals[f"SIG{WARNING_SIGNAL}"]


def prepare_data(
    data: TextTable | EntityMentions | SpellingTexts, report: _Report
) -> Prepared | MentionSet | SpellingSet:
    """Build the prepared data of a section unless they are there. Raises DataError."""
    if isinstance(data, EntityMentions):
        return prepare_mentions(data, report)
    if isinstance(data, SpellingTexts):
        return prepare_texts(data, report)
    return prepare(data, report)


class Progress(Lines):
    """Lines for a log, and whether this start has done what its next one need not do again."""

    def __init__(self) -> None:
        super().__init__()
        self._first: int | None = None
        self.has_kept_something = False

    def preparing(self, what: str, done: int, total: int | None) -> None:
        super().preparing(what, done, total)
        if what == SHARDS:
            if self._first is None:
                self._first = done
            self.has_kept_something = done > self._first


class TimeLimitWatch:
    """Waits for Slurm's warning in a thread, and asks for another start where that goes on."""

    def __init__(self, experiment: Experiment, progress: Progress, environ: Mapping[str, str]) -> None:
        self._signal_s = signal_lead_s(experiment.resources)
        self._progress = progress
        self._environ = environ
        self._warned = threading.Event()

    def start(self) -> None:
        """Listen from now on; to be called in the main thread."""
        # Asked in a thread: a controller may take long to answer, and the work goes on meanwhile.
        threading.Thread(target=self._wait, daemon=True).start()
        signal.signal(_SIGNAL, lambda number, frame: self._warned.set())

    def _wait(self) -> None:
        self._warned.wait()
        try:
            self._progress.message(f"stk: {self.answer()}")
        except StkError as error:
            self._progress.message(f"stk: not put back into the queue: {error}")

    def answer(self) -> str:
        """What is done about a warning, in a sentence. Raises SchedulerError."""
        job = Job.around(self._environ)
        facts = job.facts(PATIENCE_S)
        why = why_of(job, facts, Seen(reason=WARNING, restart=job.restart, signal_s=self._signal_s))
        if why == CANCELLED or is_back(facts, job.restart):
            return f"the job was stopped: {why}"
        if why == TIME_LIMIT and not self._progress.has_kept_something:
            return (
                "the time limit is near, and nothing is done that another start could go on from: it needs a "
                "longer resources.time"
            )
        controller.patiently(lambda: controller.requeue(job.id, timeout_s=10), PATIENCE_S)
        return f"the job was stopped: {why}; it goes back into the queue, and goes on with what is done"


def run_job(folder: RunDir, environ: Mapping[str, str]) -> int:
    """Prepare the data of the experiment in a folder, inside a job; return the exit code."""
    experiment = load_resolved(folder.config)
    progress = Progress()
    TimeLimitWatch(experiment, progress, environ).start()
    progress.message(f"preparing on {os.uname().nodename}, with {_cpus(experiment.data)}")
    prepared = prepare_data(experiment.data, progress.preparing)
    progress.message(prepared.summary())
    if (code := prepare_entities(experiment, str(folder.path))) == 0:
        # For `stk status`: a job that has done its work has trained no step.
        write_json(folder.result, {"step": 0, "prepared": prepared.to_json()})
    return code


def prepare_entities(experiment: Experiment, config: str, *overrides: str) -> int:
    """Compute what needs torch, in a process that has it; return its exit code.

    Vectors of entities are computed in the worker's world: a process of its own keeps torch out of this one.
    """
    if not getattr(experiment.model, "fixes_entities", False):
        return 0
    return launch.prepare(config, overrides, scrub(), sys.stderr)


def _cpus(data: Any) -> str:
    workers = getattr(data, "workers", None) or 1
    return "1 process" if workers == 1 else f"{workers} processes"


def main() -> int:
    """Run the job's work; a fault in the data is told without a stack trace."""
    try:
        return run_job(RunDir(Path(sys.argv[1])), dict(os.environ))
    except StkError as error:
        Progress().message(f"error: {error}")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
