"""submitit makes the job: its pickle, its folder and its batch command, around our own script."""

from __future__ import annotations

import os
from typing import Any

from submitit.core.utils import DelayedSubmission
from submitit.slurm.slurm import SlurmExecutor, SlurmJob

from slurm.job.task import TrainJob
from slurm.submission.batch.batch_script import JobPlan
from slurm.submission.submit_job import make_submitit, sbatch
from toolkit.run.run_dir import RunDir


def pack(run: RunDir) -> None:
    """Put the pickle that starts a rank of the run into its folder, where the batch script takes it."""
    make_submitit(run)
    DelayedSubmission(TrainJob(str(run.path))).dump(run.submitit / "job.pkl")


class PlanExecutor(SlurmExecutor):
    """Submits a JobPlan: the batch script is str(plan), to the byte."""

    def __init__(self, plan: JobPlan) -> None:
        super().__init__(folder=plan.run.submitit)
        self._plan = plan

    def launch(self) -> str:
        """Submit the plan and return the job's id. Raises SchedulerError.

        The pickle exists before sbatch is called, so the job can run even if this process dies
        before it learns the job's id.
        """
        pack(self._plan.run)
        try:
            return str(self.submit(TrainJob(str(self._plan.run.path))).job_id)
        finally:
            self._drop_unnamed_pickles()

    def _drop_unnamed_pickles(self) -> None:
        """Remove the files that submitit leaves when sbatch fails."""
        for path in self.folder.glob("*.pkl"):
            if path.name != "job.pkl" and not path.name.endswith("_submitted.pkl"):
                path.unlink()

    def _make_submission_file_text(self, command: str, uid: str) -> str:
        return str(self._plan)

    def _num_tasks(self) -> int:
        return self._plan.world_size

    def _submit_command(self, command: str) -> SlurmJob[Any]:
        """As submitit's, but with a time-out, Slurm's own words in errors, and a clean environment."""
        job_id = sbatch(self._plan, os.environ)
        return SlurmJob(folder=self.folder, job_id=job_id, tasks=list(range(self._num_tasks())))

    @classmethod
    def affinity(cls) -> int:
        # submitit asks for `srun` on PATH; whether a controller answers has been found out already.
        return 2
