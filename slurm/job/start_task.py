"""One task of a job's step: python -u -m slurm.job.start_task FOLDER, as submitit's own module.

A signal that asks it to stop may come while Python imports submitit and the run's code. It would end the
process, which would count as a crash. It is held back until the rank can save and leave (StopFlag.install).
"""

from __future__ import annotations

from toolkit.reliability.early_stop import hold_back


def main() -> None:
    hold_back()
    # Only now: the import takes a while.
    from submitit.core.submission import submitit_main

    submitit_main()


if __name__ == "__main__":
    main()
