"""A Hydra app that the submitit launcher submits: python -m benchmarks.login.with_hydra.

--config-dir FOLDER --config-name NAME --multirun hydra/launcher=submitit_slurm seed=1
"""

from __future__ import annotations

import hydra
import submitit
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig

# The launcher waits for its jobs; this measurement ends with the job ids.
setattr(submitit.Job, "results", lambda job: [JobReturn(status=JobStatus.COMPLETED)])  # noqa: B010


@hydra.main(version_base=None, config_path=None)
def main(config: DictConfig) -> None:
    """Do nothing: the work of a job."""


if __name__ == "__main__":
    main()
