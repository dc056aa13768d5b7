"""Code that runs inside a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slurm.job.task import TrainJob as TrainJob


def __getattr__(name: str) -> object:
    """Return the pickled class of jobs: jobs of earlier versions refer to it by this name."""
    if name == "TrainJob":
        from slurm.job.task import TrainJob

        return TrainJob
    raise AttributeError(name)
