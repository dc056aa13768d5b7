"""What runs as one task of the job: a path, nothing more.

submitit pickles a TrainJob by the name of its class, so the job needs no object from the submitter
and runs the code that lies in the run folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from slurm.preempt import JobStop, hand_over
from slurm.topology import world_from_step
from toolkit.rundir import RunDir
from toolkit.world import World


@dataclass(frozen=True, slots=True)
class TrainJob:
    """Trains the run in a folder, as the rank that Slurm's step says."""

    run_dir: str

    def __call__(self) -> int:
        return run_rank(RunDir(Path(self.run_dir)), world_from_step(os.environ))


def run_rank(run: RunDir, world: World) -> int:
    """Train a run as one rank of a job's step, or of torchrun; return the exit code.

    Stopped by Slurm, it saves, and rank 0 sees to it that the job goes back into the queue.
    """
    # First of all, because a signal may come in the seconds that torch takes to import.
    stop = JobStop().install()
    # Deferred: the login node unpickles and submits this class without paying for torch.
    from toolkit import worker

    if worker.run(run, world, stop).is_finished:
        return 0
    if world.is_main and "SLURM_JOB_ID" in os.environ:
        hand_over(run, os.environ, stop)
    return worker.EXIT_YIELDED
