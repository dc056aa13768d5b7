"""Hosts with different numbers of GPUs: trained as one world, requeued as a whole, and named one by one."""

from __future__ import annotations

import json

import pytest

from tests.cluster.product.stopping.requeue_cases import Case
from tests.cluster.product.user import User, ranks, slowly, starts, weights
from toolkit.files import read_json_lines
from toolkit.run.records.step_records import read_step_records
from toolkit.run.run_dir import RunDir


def requeued(user: User, *resources: str) -> RunDir:
    """The long run on these resources, requeued on the way, when it has finished under the same job id."""
    run, job_id = user.submit("long", *resources, env=slowly(0.4))
    user.wait_for_step(run)
    assert "asked to save" in user.run("stk", "requeue", run.run_id).stdout
    case = Case(user, run, job_id)
    case.finish()
    # Rank 0 tidies up after it has written down how its attempt ended.
    assert user.wait_for_end(job_id) == "COMPLETED", user.story(run)
    assert case.whys == ["requested", "finished"]
    assert [start["job_id"] for start in starts(run)] == [job_id] * 2
    return run


@pytest.mark.slow
def test_three_ranks_on_two_uneven_hosts_resume_after_a_requeue(user: User, long_alone: RunDir) -> None:
    """Three is no power of two: the same samples in each step, and the same losses but for rounding."""
    groups = "resources.groups=[{nodes: 1, gpus: 2}, {nodes: 1, gpus: 1}]"
    run = requeued(user, groups, "resources.world_size=3", "train.rendezvous=file")
    for start in starts(run):
        places = [(rank["node"], rank["local_rank"]) for rank in read_json_lines(run.ranks(start["nonce"]))]
        assert places == [(0, 0), (0, 1), (1, 0)]
    listed = user.stk_json("logs", run.run_id, "--list")
    assert [(each["attempt"], each["rank"]) for each in listed if each["attempt"]] == [
        (attempt, rank) for attempt in (1, 2) for rank in (0, 1, 2)
    ]
    ours, theirs = list(read_step_records(run)), list(read_step_records(long_alone))
    assert [record.samples for record in ours] == [record.samples for record in theirs]
    assert [record.loss for record in ours] == pytest.approx([record.loss for record in theirs], rel=1e-4)
    assert not list(run.ranks("").parent.glob("*.filestore"))


@pytest.mark.slow
def test_ranks_follow_the_order_of_hosts_in_the_json_file(user: User, quick_alone: RunDir) -> None:
    """Not in the order of their names, in which Slurm lists them, and counts the tasks of each."""
    hosts = user.cluster.hosts
    (user.home / "world.json").write_text(json.dumps({hosts[2]: 1, hosts[0]: 3}))
    observed = {"PYTHONPATH": str(user.install_probe())}
    run, job_id = user.submit("quick", "resources.hosts=world.json", env=observed)
    user.wait_until_finished(run, job_id)
    assert [rank["host"] for rank in ranks(run)] == [hosts[2], hosts[0], hosts[0], hosts[0]]
    assert [(rank["node"], rank["local_rank"]) for rank in ranks(run)] == [(0, 0), (1, 0), (1, 1), (1, 2)]
    sizes = [environment["LOCAL_WORLD_SIZE"] for environment in user.environments_of_ranks()]
    assert sizes == ["1", "3", "3", "3"]
    assert weights(run) == weights(quick_alone)


@pytest.mark.slow
def test_ranks_rendezvous_at_the_exported_master_port(user: User, quick_alone: RunDir) -> None:
    setup = "resources.setup=['export MASTER_ADDR=$(hostname) MASTER_PORT=21987']"
    run, job_id = user.submit("quick", "resources.nodes=2", "train.rendezvous=env", setup)
    user.wait_until_finished(run, job_id)
    assert {rank["master_port"] for rank in ranks(run)} == {21987}
    assert weights(run) == weights(quick_alone)


def test_host_with_too_few_gpus_is_named_before_submission(user: User) -> None:
    hosts = user.cluster.hosts
    answer = user.run(
        "stk", "submit", "quick.yaml", f"resources.hosts={{{hosts[0]}: 1, {hosts[1]}: 5}}", check=False
    )
    assert answer.returncode == 3
    assert f"{hosts[1]}: " in answer.stderr
    assert not user.runs.exists() or not list(user.runs.iterdir())


def test_world_size_that_contradicts_the_allocation_is_refused_with_both_numbers(user: User) -> None:
    """Every task refuses it, before there is a run."""
    command = ("srun", "--ntasks=4", "stk", "run", "quick.yaml")
    typed = user.run(*command, "--world-size", "3", check=False)
    assert typed.returncode == 2
    assert "--world-size is 3, but 4 processes make up this world" in typed.stderr
    exported = user.run(*command, env={"WORLD_SIZE": "8"}, check=False)
    assert exported.returncode == 2
    assert "WORLD_SIZE in the environment is 8, but 4 processes make up this world" in exported.stderr
    assert not user.runs.exists() or not list(user.runs.iterdir())
