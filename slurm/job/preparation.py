"""Preparing data: what `stk prepare` does here, and what its job runs.

python -P -m slurm.job.preparation FOLDER

The job needs no signal to save: its finished parts are on the disk. After a preemption Slurm puts it back,
because it does not exit before it is killed. Before its time limit it asks for that, where it has done
something that its next attempt need not do again; else each attempt would end like this one.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slurm.client import programs
from slurm.client.stop_reason import CANCELLED, TIME_LIMIT, WARNING, WARNING_SIGNAL, StopEvidence, is_back
from slurm.client.topology import scrub
from slurm.job.requeue import PATIENCE_S, Job, why_of
from slurm.submission.batch.job_options import signal_lead_s
from toolkit.config import load_to_run
from toolkit.config.schema import Experiment
from toolkit.data.prepared.folder import PreparedFolder
from toolkit.errors import ExitCode, StkError
from toolkit.files import write_json
from toolkit.launch import launcher
from toolkit.reliability.early_stop import interrupt_on_request
from toolkit.run.run_dir import RunDir
from toolkit.training.output.progress_display import LogDisplay
from toolkit.workload import PreparedSet, Progress

_SIGNAL = signal.Signals[f"SIG{WARNING_SIGNAL}"]


class KeptProgress(LogDisplay):
    """Lines for a log, and whether this attempt has done what its next one need not do again."""

    def __init__(self, resumable_stage: str = "") -> None:
        super().__init__()
        self._stage = resumable_stage
        self._first: int | None = None
        self.has_kept_something = False

    def preparing(self, what: str, done: int, total: int | None) -> None:
        super().preparing(what, done, total)
        if what == self._stage:
            if self._first is None:
                self._first = done
            self.has_kept_something = done > self._first


class TimeLimitWatch:
    """Waits for Slurm's warning in a thread, and asks for another attempt where that goes on."""

    def __init__(self, experiment: Experiment, progress: KeptProgress, environ: Mapping[str, str]) -> None:
        self._signal_s = signal_lead_s(experiment.resources)
        self._progress = progress
        self._environ = environ

    def start(self) -> None:
        """Listen from now on; to be called in the main thread."""
        # Held back in all threads, so that this one gets it. A controller may take long to answer, and the
        # work goes on meanwhile.
        signal.pthread_sigmask(signal.SIG_BLOCK, [_SIGNAL])
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        signal.sigwait([_SIGNAL])
        try:
            self._progress.message(f"stk: {self.answer()}")
        except StkError as error:
            self._progress.message(f"stk: not put back into the queue: {error}")

    def answer(self) -> str:
        """Return the action on a warning, in a sentence. Raises SchedulerError."""
        job = Job.around(self._environ)
        facts = job.facts(PATIENCE_S)
        why = why_of(job, facts, StopEvidence(reason=WARNING, restart=job.restart, signal_s=self._signal_s))
        if why == CANCELLED or is_back(facts, job.restart):
            return f"the job was stopped: {why}"
        if why == TIME_LIMIT and not self._progress.has_kept_something:
            return (
                "the time limit is near, and another attempt could reuse nothing: this needs a "
                "longer resources.time"
            )
        programs.patiently(lambda: programs.requeue(job.id, timeout_s=10), PATIENCE_S)
        return f"the job was stopped: {why}; it goes back into the queue, and keeps the finished parts"


def run_job(folder: RunDir, environ: Mapping[str, str]) -> int:
    """Prepare the data of the experiment in a folder, inside a job; return the exit code."""
    experiment = load_to_run(folder.config)
    progress = KeptProgress(experiment.data.RESUMABLE_STAGE)
    TimeLimitWatch(experiment, progress, environ).start()
    progress.message(f"preparing on {os.uname().nodename}, with {_cpus(experiment.data)}")
    prepared = prepare_data(experiment, progress.preparing)
    progress.message(prepared.summary())
    if (code := prepare_model(experiment, str(folder.path))) == 0:
        # For `stk status`: a job that has done its work has trained no step.
        write_json(folder.result, {"step": 0, "prepared": prepared.to_json()})
    return code


def prepare_data(experiment: Experiment, progress: Progress) -> PreparedSet:
    """Build the prepared data, or compare what is there with its checksums. Raises DataError."""
    prepared: PreparedSet = experiment.data.prepare(progress)
    if isinstance(prepared, PreparedFolder) and not prepared.built:
        prepared.verify()
    return prepared


def prepare_model(experiment: Experiment, config: str, *overrides: str) -> int:
    """Compute what needs torch, in a process that has it; return its exit code.

    It is computed as a worker does it: a separate process keeps torch out of this one.
    """
    if not experiment.model.needs_preparation:
        return 0
    return launcher.prepare(config, overrides, scrub(), sys.stderr)


def _cpus(data: Any) -> str:
    workers = getattr(data, "workers", None) or 1
    return "1 process" if workers == 1 else f"{workers} processes"


def main() -> int:
    """Run the job's work; a fault in the data is reported without a stack trace."""
    # Its processes finish the parts that they are at.
    interrupt_on_request(signal.SIGTERM)
    try:
        return run_job(RunDir(Path(sys.argv[1])), dict(os.environ))
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except StkError as error:
        KeptProgress().message(f"error: {error}")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
