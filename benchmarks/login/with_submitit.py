"""Submit calls of a function with submitit: python -m benchmarks.login.with_submitit FOLDER CALLS."""

from __future__ import annotations

import operator
import sys

import submitit


def main() -> None:
    folder, calls = sys.argv[1], int(sys.argv[2])
    executor = submitit.AutoExecutor(folder=folder, cluster="slurm")
    executor.update_parameters(timeout_min=60, slurm_array_parallelism=256)
    if calls == 1:
        print(executor.submit(operator.neg, 1).job_id)
    else:
        print(len(executor.map_array(operator.neg, range(calls))))


if __name__ == "__main__":
    main()
