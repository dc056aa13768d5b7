"""The pickle from which submitit starts each rank of a run."""

from __future__ import annotations

from submitit.core.utils import DelayedSubmission

from slurm.job.task import TrainJob
from slurm.submission.submit_job import make_submitit
from toolkit.run.run_dir import RunDir


def pack(run: RunDir) -> None:
    """Write the pickle that starts a rank to the run's folder, for the batch script."""
    make_submitit(run)
    DelayedSubmission(TrainJob(str(run.path))).dump(run.submitit / "job.pkl")
