"""Plans of all kinds, as values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from slurm.config.resources import Group, Resources
from slurm.submission.batch.batch_script import JobPlan
from toolkit.config.schema import Experiment
from toolkit.run.run_dir import RunDir

RUN = RunDir(Path("/scratch/me/experiments/tiny-0123abcd"))
HOSTILE = 'it\'s "50 %" of $HOME, `date` \\ #1 <é漢🙂> '

PLANS: dict[str, tuple[Resources, RunDir]] = {
    "single_node": (Resources(), RUN),
    "two_nodes_with_gres": (Resources(nodes=2, tasks_per_node=2, gres="gpu:2"), RUN),
    "elastic": (
        Resources(nodes="1-4", tasks_per_node=2, time="10"),
        RUN,
    ),
    "every_option": (
        Resources(
            nodes=4,
            tasks_per_node=2,
            gres="gpu:a100:2,tmpdisk:10",
            gpus_per_node="2",
            gpus_per_task="1",
            cpus_per_task=6,
            mem="64G",
            mem_per_cpu="4G",
            mem_per_gpu="32G",
            time="1-12:00:00",
            partition="long,short",
            account="lab",
            qos="high",
            constraint="a100|h100",
            nodelist="node[1-4]",
            exclude="node7,node9",
            reservation="course",
            dependency="afterok:12:13",
            mail_user="me@example.org",
            mail_type="END,FAIL",
            comment="first try",
            licenses="matlab:1",
            exclusive=True,
            max_parallel=4,
            signal_s=300,
            setup=("module purge", "module load cuda/12.4"),
            environment={"OMP_NUM_THREADS": "6", "NCCL_DEBUG": "INFO"},
            sbatch={"kill-on-invalid-dep": "yes", "spread_job": True, "nice": 100},
        ),
        RUN,
    ),
    "uneven_groups": (
        Resources(
            groups=(
                Group(nodes=1, gpus=3),
                Group(nodes=2, gpus=1, partition="short", constraint="v100"),
                Group(nodes=1, gpus=0),
            ),
            partition="long",
            cpus_per_task=2,
            comment="one heterogeneous job",
        ),
        RUN,
    ),
    "hostile_values": (
        Resources(
            comment=HOSTILE,
            account="a b",
            environment={"REMARK": HOSTILE + "\nsecond line\r\n", "EMPTY": "", "lower": "a,b"},
            setup=("source '/opt/my env/activate'",),
            sbatch={"wckey": "2; touch /tmp/gotcha"},
        ),
        RunDir(Path("/scratch/it's \"my\" $HOME, `x` #1/tiny-0123abcd")),
    ),
}  # fmt: skip


def plan(experiment: Experiment, resources: Resources, run: RunDir = RUN) -> JobPlan:
    return JobPlan(
        experiment=replace(experiment, resources=resources), run=run, python="/opt/my venv/bin/python"
    )
