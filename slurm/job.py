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


@dataclass(frozen=True, slots=True)
class TrainJob:
    """Trains the run in a folder, as the rank that Slurm's step says."""

    run_dir: str

    def __call__(self) -> str:
        # Deferred: the login node unpickles and submits this class without paying for torch.
        from toolkit import worker

        run = RunDir(Path(self.run_dir))
        world = world_from_step(os.environ)
        stop = JobStop().install()
        outcome = worker.run(run, world, stop)
        if outcome is worker.Outcome.YIELDED and world.is_main:
            hand_over(run, os.environ, stop)
        return outcome.value
