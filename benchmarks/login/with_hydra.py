"""An app of Hydra that its submitit launcher hands to Slurm: python -m benchmarks.login.with_hydra.

--config-dir FOLDER --config-name NAME --multirun hydra/launcher=submitit_slurm seed=1
"""

from __future__ import annotations

import hydra
import submitit
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig

# The launcher waits for its jobs; here the time ends with their ids.
setattr(submitit.Job, "results", lambda job: [JobReturn(status=JobStatus.COMPLETED)])  # noqa: B010


@hydra.main(version_base=None, config_path=None)
def main(config: DictConfig) -> None:
    """The work of a job."""


if __name__ == "__main__":
    main()
