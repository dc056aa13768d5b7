"""The pickled task of the job, which only has a path.

submitit pickles a TrainJob by the name of its class, so the job needs no object from the submitter
and runs the code in the run folder. The name is `slurm.job.TrainJob` in every version.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from slurm.client.topology import step_nonce, world_from_step
from slurm.job.requeue import requeue_or_chain
from slurm.job.stop_signals import JobStop
from slurm.job.when_to_stop import JobWatch
from toolkit.config import load_resolved
from toolkit.config.secrets import concealed
from toolkit.errors import SchedulerError, StkError
from toolkit.exit_codes import ExitCode
from toolkit.registry import worker_of
from toolkit.run.attempts.refusal import write_refusal
from toolkit.run.disk_reserve import give_up_reserve, keep_reserve
from toolkit.run.events import note_event
from toolkit.run.failure.format import format_failure
from toolkit.run.failure.import_errors import record_import_error
from toolkit.run.failure.records import first_failure
from toolkit.run.kept_code.code_snapshot import check_kept
from toolkit.run.run_dir import RunDir
from toolkit.system.process_main import exit_process
from toolkit.system.world import World

log = logging.getLogger("toolkit.slurm")


@dataclass(frozen=True, slots=True)
class TrainJob:
    """Trains the run in a folder, as the rank of this task in Slurm's step."""

    __module__ = "slurm.job"

    run_dir: str

    def __call__(self) -> NoReturn:
        # submitit itself only exits with 0 or 1, but this status decides whether the run continues.
        run = RunDir(Path(self.run_dir))
        try:
            world = world_from_step(os.environ)
        except SchedulerError as error:
            # The other tasks of the step read the refusal, and do not wait for this one.
            write_refusal(run, step_nonce(os.environ), str(error))
            raise
        try:
            code = run_rank(run, world)
        except StkError as error:
            # In submitit, the error would end the log with a stack trace that does not help the user.
            failure = first_failure(run, world.nonce)
            shown = f"error: {concealed(str(error))}" if failure is None else format_failure(failure)
            sys.stderr.write(f"{shown}\n")
            code = error.exit_code
        exit_process(code)


def run_rank(run: RunDir, world: World, stop: JobStop | None = None) -> int:
    """Train a run as one rank of a job's step, or of torchrun; return the exit status.

    stop   the JobStop of this process, if its signals are already handled

    On a stop by Slurm, the ranks save, and rank 0 lets the run continue. In a job only rank 0 returns
    YIELDED: srun would end rank 0 too early if another rank returned a failure status.
    """
    if run.result.exists():
        # Slurm may start a job again that has just finished: return before torch is imported.
        return 0
    # A copy before any library sets variables: the next job inherits it.
    environ = dict(os.environ)
    is_job = "SLURM_JOB_ID" in environ
    # First, because a signal may come in the seconds in which torch is imported.
    stop = stop or JobStop(is_watched=is_job).install()
    if is_job and world.is_main:
        stop.watch = JobWatch(run, environ)
        # If the disk is already full, the run itself reports that.
        with suppress(OSError):
            keep_reserve(run)
    kind = load_resolved(run.config).task.kind
    # Imported here: the login node pickles and submits this class without importing torch.
    with record_import_error(run, world):
        check_kept(run)
        worker = worker_of(kind)
    try:
        outcome = worker(run, world, stop)
    finally:
        if stop.signals:
            note_event(run, "signals", rank=world.rank, signals=stop.signals)
    if is_job and world.is_main:
        # After a failure the batch script still needs the reserved space.
        give_up_reserve(run)
    if outcome.is_finished:
        return 0
    if not is_job:
        return ExitCode.YIELDED
    if not world.is_main:
        return 0
    try:
        requeue_or_chain(run, environ, stop)
    except StkError as error:
        # The batch script tries again; a stop is not a failure, even if the requeue failed.
        log.error("the run could not be requeued: %s", error)
    return ExitCode.YIELDED
