"""Code that runs inside a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slurm.job.task import TrainJob as TrainJob


def __getattr__(name: str) -> object:
    """Find the class that jobs are pickled by: a run of an earlier version has it under this very name."""
    if name == "TrainJob":
        from slurm.job.task import TrainJob

        return TrainJob
    raise AttributeError(name)
