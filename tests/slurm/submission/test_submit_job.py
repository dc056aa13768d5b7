"""A job submits the next one exactly once, also after errors, and without its own environment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slurm.client.programs import AnswerLost
from slurm.config.resources import Resources
from slurm.submission.submit_job import chain, environment, without_hosts
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.pretend_job import PretendJob
from tests.slurm.support.user import User
from toolkit.config import load_resolved
from toolkit.errors import SlurmRefused
from toolkit.run.run_dir import RunDir


@pytest.fixture
def job(fake: FakeSlurm, user: User) -> PretendJob:
    return PretendJob(fake, user, "resources.nodes=2", "resources.dependency=afterok:7")


def submit_next(job: PretendJob, *exclude: str) -> str:
    return chain(job.run, job.job_id, job.environ, exclude).job_id


def test_next_job_has_the_same_resources_and_waits_for_the_end_of_this_one(job: PretendJob) -> None:
    assert submit_next(job) == "102"
    script = job.script("102")
    assert "#SBATCH --nodes=2\n" in script
    assert "#SBATCH --dependency=afterany:101\n" in script
    assert f"#SBATCH --job-name={job.run.run_id}.1\n" in script
    assert "afterok" not in script


def test_stored_resources_keep_the_original_dependency(job: PretendJob) -> None:
    submit_next(job)
    resources = load_resolved(job.run.config, job.run.job).resources
    assert (resources.nodes, resources.dependency) == (2, "afterok:7")


def test_submitting_the_next_job_twice_makes_one_job(job: PretendJob) -> None:
    assert [submit_next(job) for _ in range(3)] == ["102"] * 3
    assert len(job.fake.calls("sbatch")) == 1


def test_a_next_job_that_has_ended_is_followed_by_another(job: PretendJob) -> None:
    submit_next(job)
    job.fake.change("102", state="CANCELLED")
    assert submit_next(job) == "103"


def test_a_submitter_that_died_before_it_wrote_the_id_leaves_no_second_job(
    job: PretendJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller lost the answer, and was away when it was looked for."""
    job.fake.submits("silent")
    job.fake.refuses("squeue", "slurm_load_jobs error: Unable to contact slurm controller")
    with pytest.raises(AnswerLost):
        submit_next(job)
    assert job.run.intent.exists()
    job.fake.comes_back()
    assert submit_next(job) == "102"
    assert len(job.fake.calls("sbatch")) == 1


def test_job_not_submitted_by_stk_cannot_be_submitted_again(job: PretendJob) -> None:
    with pytest.raises(SlurmRefused, match="77 was not submitted by stk"):
        chain(job.run, "77", job.environ)


def test_hosts_to_avoid_are_excluded_from_all_later_jobs(job: PretendJob) -> None:
    submit_next(job, "node3", "node1")
    assert "#SBATCH --exclude=node1,node3\n" in job.script("102")
    job.fake.change("102", state="FAILED")
    job.job_id = "102"
    submit_next(job, "node1", "node4")
    assert "#SBATCH --exclude=node1,node3,node4\n" in job.script("103")


def test_host_is_excluded_by_its_name_in_slurm(job: PretendJob) -> None:
    job.environ["SLURM_JOB_NODELIST"] = "node[1-2]"
    submit_next(job, "node2.cluster.edu")
    assert "#SBATCH --exclude=node2\n" in job.script("102")


@pytest.mark.parametrize(
    "resources, exclude, expected",
    [
        (Resources(), (), None),
        (Resources(), ("b", "a"), "a,b"),
        (Resources(exclude="node[1-3]"), ("node2",), "node[1-3]"),
        (Resources(exclude="node[1-3]"), ("node7",), "node[1-3],node7"),
        (Resources(exclude="/shared/bad-hosts"), ("node7",), "/shared/bad-hosts"),
        # The job needs these hosts.
        (Resources(nodelist="needed[1-2]"), ("b", "needed2"), "b"),
        (Resources(nodelist="/shared/hosts"), ("node7",), None),
        (Resources(hosts={"node1": 1, "node2": 1}), ("node1",), None),
    ],
)
def test_hosts_are_excluded_besides_those_before_unless_the_job_needs_them(
    resources: Resources, exclude: tuple[str, ...], expected: str | None
) -> None:
    assert without_hosts(resources, exclude) == replace(resources, exclude=expected)


def test_the_next_job_inherits_nothing_of_this_one(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    kept = {"API_TOKEN": "of the user", "SLURM_CONF": "/etc/slurm.conf"}
    dropped = {"SLURM_JOB_ID": "12", "SLURM_NTASKS": "4", "SRUN_CPUS_PER_TASK": "2"}
    dropped |= {"SBATCH_PARTITION": "long", "RANK": "3", "CUDA_VISIBLE_DEVICES": "2"}
    inherited = {**kept, **dropped, "PYTHONPATH": f"{run.code}:/site:src"}
    assert environment(run, inherited) == {**kept, "PYTHONPATH": f"/site:{Path.cwd()}/src"}


def test_cuda_visible_devices_is_kept_on_a_login_node(tmp_path: Path) -> None:
    assert environment(RunDir(tmp_path), {"CUDA_VISIBLE_DEVICES": "2"}) == {"CUDA_VISIBLE_DEVICES": "2"}


def test_sbatch_gets_the_cleaned_environment(job: PretendJob) -> None:
    job.environ |= {"SLURM_NTASKS": "4", "GREETING": "it's $HOME"}
    submit_next(job)
    assert job.fake.environment["GREETING"] == "it's $HOME"
    assert not [name for name in job.fake.environment if name.startswith("SLURM_")]
