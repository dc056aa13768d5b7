"""The batch script of a job array: each task does what a single job of its run does."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from slurm.config.resources import Group, Resources
from slurm.sweeps.array import TASK_SCRIPT, ArrayPlan
from tests.slurm.support.golden import assert_golden
from tests.slurm.support.plans import PLANS, plan
from toolkit.config.schema import Experiment
from toolkit.errors import UserError
from toolkit.run.run_dir import RunDir

GOLDEN = Path(__file__).parent / "golden.sh"


def array(experiment: Experiment, resources: Resources, folder: Path, runs: int = 3) -> ArrayPlan:
    plans = tuple(
        plan(replace(experiment, seed=seed), resources, RunDir(folder / f"tiny-{seed:08d}"))
        for seed in range(runs)
    )
    return ArrayPlan(plans=plans, folder=folder / "sweeps" / "tiny-0123abcd", max_parallel=2)


def test_script_equals_the_golden_file(experiment: Experiment) -> None:
    resources, run = PLANS["two_nodes_with_gres"]
    assert_golden(str(array(experiment, resources, run.path.parent)), GOLDEN)


@pytest.mark.parametrize("name", ["single_node", "two_nodes_with_gres", "elastic", "every_option"])
def test_array_has_the_options_of_a_single_job(experiment: Experiment, name: str) -> None:
    resources, run = PLANS[name]
    plans = array(experiment, resources, run.path.parent)
    own = ("job-name", "chdir", "output", "array")
    assert options(str(plans), without=own) == options(str(plans.plans[0]), without=own)


def options(script: str, without: tuple[str, ...]) -> list[str]:
    lines = [line for line in script.splitlines() if line.startswith("#SBATCH --")]
    return [line for line in lines if line[10:].partition("=")[0] not in without]


def test_one_dependency_of_several_is_not_joined_with_that_on_an_array(experiment: Experiment) -> None:
    either = Resources(dependency="afterok:1?afterok:2")
    plans = array(experiment, either, Path("/runs"))
    assert "afterok:1?afterok:2" in str(plans)
    with pytest.raises(UserError, match="one of several is enough"):
        str(replace(plans, after=("101",)))


def test_array_on_uneven_hosts_is_refused(experiment: Experiment) -> None:
    uneven = Resources(groups=(Group(nodes=1, gpus=2), Group(nodes=1, gpus=1)))
    with pytest.raises(UserError, match="cannot be an array"):
        str(array(experiment, uneven, Path("/runs")))


@pytest.mark.parametrize("task", [0, 2])
def test_a_task_runs_the_script_of_its_run_in_the_folder_of_its_run(
    experiment: Experiment, tmp_path: Path, task: int
) -> None:
    plans = array(experiment, Resources(), tmp_path / "it's $HOME `x`")
    plans.folder.mkdir(parents=True)
    for number, each in enumerate(plans.plans):
        each.run.submitit.mkdir(parents=True)
        (each.run.submitit / "job.pkl").write_bytes(b"the job")
        (each.run.submitit / TASK_SCRIPT).write_text(str(each))
        (plans.folder / str(number)).symlink_to(Path("..", "..", each.run.run_id))
    (tmp_path / "srun").write_text('#!/bin/sh\npwd\necho "$PYTHONPATH"\nls submitit/*_submitted.pkl\n')
    (tmp_path / "srun").chmod(0o755)
    for _ in range(2):  # a requeued task finds what its first attempt left
        done = run_task(plans, task, tmp_path)
    own = plans.plans[task].run.path
    pickles = [f"submitit/12_{task}_submitted.pkl", "submitit/77_submitted.pkl"]
    assert done.stdout.splitlines() == [str(own), f"{own}/code", *pickles]


def run_task(plans: ArrayPlan, task: int, programs: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", str(plans)],
        cwd=plans.folder,
        env={
            "PATH": f"{programs}:/usr/bin:/bin",
            "SLURM_JOB_ID": "77",
            "SLURM_ARRAY_JOB_ID": "12",
            "SLURM_ARRAY_TASK_ID": str(task),
        },
        capture_output=True,
        text=True,
        check=True,
    )


def test_a_task_without_a_run_fails_at_once(experiment: Experiment, tmp_path: Path) -> None:
    plans = array(experiment, Resources(), tmp_path)
    plans.folder.mkdir(parents=True)
    with pytest.raises(subprocess.CalledProcessError) as failure:
        run_task(plans, 1, tmp_path)
    assert (failure.value.returncode, failure.value.stdout) == (1, "")
