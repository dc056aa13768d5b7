"""Submit submitit_train.Training; print the job's id. Arguments: FOLDER PARTITION MINUTES."""

from __future__ import annotations

import shlex
import sys

import submitit
from settings import RANKS, WARNING_S
from submitit_train import Training

folder, partition, minutes = sys.argv[1:]
executor = submitit.AutoExecutor(folder=f"{folder}/logs", cluster="slurm", slurm_max_num_timeout=3)
executor.update_parameters(
    name="submitit",
    nodes=1,
    tasks_per_node=RANKS,
    cpus_per_task=1,
    timeout_min=int(minutes),
    slurm_partition=partition,
    slurm_signal_delay_s=WARNING_S,
    slurm_exclusive=True,
    slurm_setup=[f"date +%s.%N >> {shlex.quote(folder)}/launches"],
)
print(executor.submit(Training(), folder).job_id)
