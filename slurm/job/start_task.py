"""Start a task of a job's step, like submitit's own module: python -u -m slurm.job.start_task FOLDER.

A stop signal may come while Python imports submitit and the run's code. It would end the process and count as
a crash, so it is blocked until the rank can save and exit (StopFlag.install).
"""

from __future__ import annotations

import os

from toolkit.reliability.early_signals import hold_back


def main() -> None:
    hold_back()
    # Of the batch script, for its srun alone.
    os.environ.pop("SLURM_EXIT_ERROR", None)
    # After that, because this import is slow.
    from submitit.core.submission import submitit_main

    submitit_main()


if __name__ == "__main__":
    main()
