"""What runs as one task of the job: a path, nothing more.

submitit pickles a TrainJob by the name of its class, so the job needs no object from the submitter
and runs the code that lies in the run folder.
"""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from slurm.handover import hand_over
from slurm.preempt import JobStop, JobWatch
from slurm.topology import world_from_step
from toolkit.errors import StkError
from toolkit.events import note_event
from toolkit.failure.importing import explained_import
from toolkit.rundir import RunDir
from toolkit.world import World

log = logging.getLogger("toolkit.slurm")


@dataclass(frozen=True, slots=True)
class TrainJob:
    """Trains the run in a folder, as the rank that Slurm's step says."""

    run_dir: str

    def __call__(self) -> NoReturn:
        code = run_rank(RunDir(Path(self.run_dir)), world_from_step(os.environ))
        sys.stdout.flush()
        sys.stderr.flush()
        # Not by the interpreter's own end, which a thread of torch's may turn into an abort (Python
        # before 3.14): this status decides whether the run goes on. submitit knows none but 0 and 1.
        os._exit(code)


def run_rank(run: RunDir, world: World) -> int:
    """Train a run as one rank of a job's step, or of torchrun; return the exit status.

    Stopped by Slurm, it saves, and rank 0 sees to it that the run goes on. In a job rank 0 alone
    returns EXIT_YIELDED: srun would end it for another rank's status before it had done that.
    """
    if run.result.exists():
        # Slurm may start a job again that had just finished: not even torch is imported for it.
        return 0
    # As it was before any library set anything: the next job inherits it.
    environ = dict(os.environ)
    is_job = "SLURM_JOB_ID" in environ
    # First of all, because a signal may come in the seconds that torch takes to import.
    stop = JobStop(is_watched=is_job).install()
    if is_job and world.is_main:
        stop.watch = JobWatch(run, environ)
    # Deferred: the login node unpickles and submits this class without paying for torch.
    with explained_import(run, world):
        from toolkit import worker

    try:
        outcome = worker.run(run, world, stop)
    finally:
        if stop.signals:
            note_event(run, "signals", rank=world.rank, signals=stop.signals)
    if outcome.is_finished:
        return 0
    if not is_job:
        return worker.EXIT_YIELDED
    if not world.is_main:
        return 0
    try:
        hand_over(run, environ, stop)
    except StkError as error:
        # The batch script tries again; and a stop that could not be handed over is still no failure.
        log.error("the run was not handed over: %s", error)
    return worker.EXIT_YIELDED
