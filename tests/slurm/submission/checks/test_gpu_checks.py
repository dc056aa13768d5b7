"""More ranks than GPUs are found before a job waits in the queue."""

from __future__ import annotations

import pytest

from slurm.submission.checks.early_checks import (
    check_before_queue,
    gpus_without_ranks,
    hidden_gpus,
    ranks_without_gpus,
)
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User
from toolkit.errors import DataError


def found(user: User, *overrides: str) -> list[str]:
    return [".".join(each.key) for each in ranks_without_gpus(user.experiment(*overrides))]


@pytest.mark.parametrize(
    "overrides",
    [
        ["resources.gres=gpu:1"],
        ["resources.gpus_per_node=a100:1"],
        ["resources.gres='gpu:a100:1,tmpdisk:10'"],
        ["resources.gres=gpu:1", "train.device=cuda"],
        ["resources.gres=gpu:1", "resources.nodes=2"],
        ["resources.gres=gpu:1", "resources.nodes=1-2"],
        ["resources.sbatch.gpus=1"],
        ["resources.sbatch.gpus=a100:1"],
    ],
)
def test_two_ranks_on_a_host_with_one_gpu_are_found(user: User, overrides: list[str]) -> None:
    assert found(user, "resources.tasks_per_node=2", *overrides) == ["resources.tasks_per_node"]


def test_world_size_with_more_processes_than_gpus_is_found(user: User) -> None:
    assert found(user, "resources.world_size=4", "resources.gres=gpu:2") == ["resources.world_size"]


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["resources.gres=gpu:2"],
        ["resources.gres=gpu:4"],
        ["resources.gres='gpu:a100:1,gpu:v100:1'"],
        ["resources.gres=gpu:1", "train.device=cpu"],
        ["resources.gres=tmpdisk:1"],
        ["resources.gres=shard:1"],
        ["resources.gpus_per_task=1"],
        ["resources.sbatch.gpus=2"],
        # Slurm decides how many of them each host gives.
        ["resources.sbatch.gpus=3", "resources.nodes=2"],
        ["resources.sbatch.gpus=1", "resources.nodes=1-2"],
        ["resources.sbatch.gpus-per-socket=1"],
        ["resources.sbatch.gpus=0"],
    ],
)
def test_gpu_for_each_rank_or_no_gpu_at_all_is_accepted(user: User, overrides: list[str]) -> None:
    assert found(user, "resources.tasks_per_node=2", *overrides) == []


def test_uneven_hosts_have_as_many_ranks_as_gpus(user: User) -> None:
    assert found(user, "resources.groups=[{nodes: 1, gpus: 3}, {nodes: 2, gpus: 1}]") == []
    assert found(user, "resources.hosts={one: 2, two: 1}") == []


@pytest.mark.parametrize("command", ["plan", "submit"])
def test_plan_and_submit_refuse_more_ranks_than_gpus(user: User, fake: FakeSlurm, command: str) -> None:
    text = user.config.read_text() + "resources:\n  gres: gpu:1\n  tasks_per_node: 2\n"
    config = user.write("two.yaml", text)
    line = len(text.splitlines())
    said = user.refused(command, config)
    assert fake.jobs == []
    assert f"two.yaml:{line}: resources.tasks_per_node" in said


def test_requested_gpus_are_not_checked_for_a_local_run(user: User) -> None:
    experiment = user.experiment("resources.gres=gpu:1", "resources.tasks_per_node=2")
    check_before_queue(experiment, None, "local")
    with pytest.raises(DataError, match=r"resources\.tasks_per_node"):
        check_before_queue(experiment, None, "slurm")


@pytest.mark.parametrize("nodes", ["1", "1-2"])
def test_gpus_per_task_is_reported_with_several_tasks(user: User, nodes: str) -> None:
    asked = ("resources.tasks_per_node=2", f"resources.nodes={nodes}")
    (odd,) = hidden_gpus(user.experiment(*asked, "resources.gpus_per_task=1"))
    assert ".".join(odd.key) == "resources.gpus_per_task"
    assert not list(hidden_gpus(user.experiment(*asked, "resources.gres=gpu:2")))
    assert not list(hidden_gpus(user.experiment("resources.gpus_per_task=1")))


def test_gpus_without_ranks_are_reported(user: User) -> None:
    (idle,) = gpus_without_ranks(user.experiment("resources.gpus_per_node=a100:4"))
    assert ".".join(idle.key) == "resources.tasks_per_node"
    assert "3 would be idle" in idle.problem


@pytest.mark.parametrize(
    "asked",
    [
        ("resources.gres=gpu:1",),
        ("resources.gpus_per_node=4", "resources.tasks_per_node=4"),
        ("resources.gpus_per_node=4", "train.device=cpu"),
        ("resources.gpus_per_node=4", "train.parallel=dp"),
        ("resources.groups=[{nodes: 1, gpus: 3}, {nodes: 2, gpus: 1}]",),
    ],
)
def test_rank_for_each_gpu_is_not_reported(user: User, asked: tuple[str, ...]) -> None:
    assert not list(gpus_without_ranks(user.experiment(*asked)))
