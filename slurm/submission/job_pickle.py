"""The pickle from which submitit starts each rank of a run."""

from __future__ import annotations

from submitit.core.utils import DelayedSubmission

from slurm.job.task import TrainJob
from slurm.submission.submit_job import make_submitit
from toolkit.run.run_dir import RunDir


def pack(run: RunDir) -> None:
    """Put the pickle that starts a rank of the run into its folder, where the batch script takes it."""
    make_submitit(run)
    DelayedSubmission(TrainJob(str(run.path))).dump(run.submitit / "job.pkl")
