"""What a job needs: submitit's pickle, and sbatch called with our own script."""

from __future__ import annotations

import os
import pickle
import pickletools

import pytest

from slurm.job.task import TrainJob
from slurm.submission.batch.batch_script import JobPlan
from slurm.submission.job_pickle import pack
from slurm.submission.submit import submit
from slurm.submission.submit_job import sbatch
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User
from toolkit.errors import SlurmRefused
from toolkit.run.create_run import create_run


@pytest.fixture
def plan(user: User, fake: FakeSlurm) -> JobPlan:
    experiment = user.experiment("resources.nodes=2", "resources.tasks_per_node=2")
    run = create_run(experiment, user.experiments)
    return JobPlan(experiment=experiment, run=run)


def test_the_pickle_calls_the_ranks_function(plan: JobPlan) -> None:
    pack(plan.run)
    submission = pickle.loads((plan.run.submitit / "job.pkl").read_bytes())
    assert submission.function == TrainJob(str(plan.run.path))


def test_the_pickle_holds_a_path_and_nothing_of_the_experiment(plan: JobPlan) -> None:
    """What it names is imported where it is loaded: our callable and submitit's wrapper, no more."""
    pack(plan.run)
    content = (plan.run.submitit / "job.pkl").read_bytes()
    assert named_globals(content) <= {
        "slurm.job TrainJob",
        "submitit.core.utils DelayedSubmission",
        "copyreg _reconstructor",
        "builtins object",
    }
    texts = {argument for _, argument, _ in pickletools.genops(content) if isinstance(argument, str)}
    assert str(plan.run.path) in texts
    assert not texts & {"convolutions", "reviews.tsv", "tiny", "resources"}


def named_globals(content: bytes) -> set[str]:
    """Modules and attributes that loading a pickle would import."""
    found: set[str] = set()
    strings: list[str] = []
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name == "STACK_GLOBAL":
            found.add(" ".join(strings[-2:]))
        elif opcode.name == "GLOBAL":
            found.add(str(argument))
        elif isinstance(argument, str):
            strings.append(argument)
    return found


def test_the_pickle_is_there_before_sbatch_is_called(plan: JobPlan, fake: FakeSlurm) -> None:
    """A refused submission shows what lay there at that moment."""
    fake.submits("refuse", "sbatch: error: no")
    with pytest.raises(SlurmRefused, match="sbatch: error: no"):
        submit(plan.experiment, plan.run, "slurm")
    assert (plan.run.submitit / "job.pkl").exists()


def test_job_submitted_inside_a_job_inherits_no_slurm_variables_but_slurm_conf(
    plan: JobPlan, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaks = (
        "SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_CPUS_PER_TASK", "SLURM_PROCID", "SLURMD_NODENAME",
        "SBATCH_PARTITION", "SRUN_DEBUG", "RANK", "WORLD_SIZE", "MASTER_ADDR", "PMI_RANK",
    )  # fmt: skip
    for name in leaks:
        monkeypatch.setenv(name, "7")
    monkeypatch.setenv("SLURM_CONF", "/etc/site/slurm.conf")
    monkeypatch.setenv("MY_TOKEN_FILE", "kept")
    pack(plan.run)
    sbatch(plan, os.environ)
    assert not set(leaks) & set(fake.environment)
    assert fake.environment["SLURM_CONF"] == "/etc/site/slurm.conf"
    assert fake.environment["MY_TOKEN_FILE"] == "kept"
