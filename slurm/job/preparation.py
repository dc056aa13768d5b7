"""Prepare data, for `stk prepare` on this machine and in a job.

python -P -m slurm.job.preparation FOLDER

The job needs no signal to save: its finished parts are on the disk. After a preemption Slurm requeues it,
because it does not exit before it is killed. Before its time limit the job requeues itself, but only if the
next attempt can reuse parts of this one; otherwise each attempt would end in the same way.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from slurm.client import programs
from slurm.client.stop_reason import CANCELLED, TIME_LIMIT, WARNING, WARNING_SIGNAL, StopEvidence, is_back
from slurm.client.topology import scrub
from slurm.job.requeue import PATIENCE_S, Job, why_of
from slurm.submission.batch.job_options import signal_lead_s
from toolkit.config import load_to_run
from toolkit.config.schema import Experiment
from toolkit.data.prepared.folder import PreparedFolder
from toolkit.errors import StkError
from toolkit.exit_codes import ExitCode
from toolkit.files import write_json
from toolkit.launch import launcher
from toolkit.reliability.early_signals import interrupt_on_request
from toolkit.run.run_dir import RunDir
from toolkit.training.output.progress_display import LogDisplay
from toolkit.workload import PreparedSet, Progress

_SIGNAL = signal.Signals[f"SIG{WARNING_SIGNAL}"]


class KeptProgress(LogDisplay):
    """Progress as log lines; also records whether this attempt has finished parts that are kept."""

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


def await_warning(signal_s: int, progress: KeptProgress, environ: Mapping[str, str]) -> None:
    """Wait for Slurm's warning in a thread, and act on it. Must be called in the main thread.

    signal_s   the lead of the warning before the time limit
    """

    def wait() -> None:
        signal.sigwait([_SIGNAL])
        try:
            progress.message(f"stk: {act_on_warning(signal_s, progress, environ)}")
        except StkError as error:
            progress.message(f"stk: not requeued: {error}")

    # Blocked in all threads, so that only the new one gets it (sigwait). A controller may take long to
    # answer, and the preparation continues meanwhile.
    signal.pthread_sigmask(signal.SIG_BLOCK, [_SIGNAL])
    threading.Thread(target=wait, daemon=True).start()


def act_on_warning(signal_s: int, progress: KeptProgress, environ: Mapping[str, str]) -> str:
    """Requeue the job if the next attempt can continue; return the action. Raises SchedulerError."""
    job = Job.around(environ)
    facts = job.facts(PATIENCE_S)
    why = why_of(job, facts, StopEvidence(reason=WARNING, restart=job.restart, signal_s=signal_s))
    if why == CANCELLED or is_back(facts, job.restart):
        return f"the job was stopped: {why}"
    if why == TIME_LIMIT and not progress.has_kept_something:
        return (
            "the time limit is near, and another attempt could reuse nothing: the job needs a "
            "longer resources.time"
        )
    programs.patiently(lambda: programs.requeue(job.id, timeout_s=10), PATIENCE_S)
    return f"the job was stopped: {why}; it is requeued, and keeps the finished parts"


def run_job(folder: RunDir, environ: Mapping[str, str]) -> int:
    """Prepare the data of the experiment in a folder, inside a job; return the exit code."""
    experiment = load_to_run(folder.config)
    progress = KeptProgress(experiment.data.RESUMABLE_STAGE)
    await_warning(signal_lead_s(experiment.resources), progress, environ)
    workers = getattr(experiment.data, "workers", None) or 1
    processes = f"{workers} process{'' if workers == 1 else 'es'}"
    progress.message(f"preparing on {os.uname().nodename}, with {processes}")
    prepared = prepare_data(experiment, progress.preparing)
    progress.message(prepared.summary())
    if (code := prepare_model(experiment, str(folder.path))) == 0:
        # For `stk status`: the job is finished, with no trained step.
        write_json(folder.result, {"step": 0, "prepared": prepared.to_json()})
    return code


def prepare_data(experiment: Experiment, progress: Progress) -> PreparedSet:
    """Build the prepared data, or verify the checksums of existing data. Raises DataError."""
    prepared: PreparedSet = experiment.data.prepare(progress)
    if isinstance(prepared, PreparedFolder) and not prepared.built:
        prepared.verify()
    return prepared


def prepare_model(experiment: Experiment, config: str, *overrides: str) -> int:
    """Compute what needs torch, in a process that has it; return its exit code.

    The process computes like a worker; this process never imports torch.
    """
    if not experiment.model.needs_preparation:
        return 0
    return launcher.prepare(config, overrides, scrub(), sys.stderr)


def main() -> int:
    """Run the job; print errors of the user's data without a stack trace. Return the exit code."""
    try:
        # On SIGTERM, the worker processes finish their current parts. An earlier one interrupts at once.
        interrupt_on_request(signal.SIGTERM)
        return run_job(RunDir(Path(sys.argv[1])), dict(os.environ))
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except StkError as error:
        KeptProgress().message(f"error: {error}")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
