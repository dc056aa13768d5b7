"""The options of `stk run` describe this machine and the others; contradictions are refused."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import replace
from typing import Any

import pytest

from slurm.cli import _parse
from slurm.commands.experiments import local_world
from slurm.commands.experiments.local_world import (
    check_world_size,
    granted_gpus,
    machines_here,
    rank_environ,
    refuse_by_hand,
)
from slurm.config.rank_count import local_processes, told_fewer
from slurm.config.resources import Resources
from tests.slurm.support.user import User
from tests.toolkit.support.nvml import Library, gpu
from toolkit.config import load
from toolkit.errors import UserError
from toolkit.launch.machines.layout import Machines
from toolkit.system import idle_gpus


@pytest.fixture(autouse=True)
def this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a name, an address, and no GPU."""
    monkeypatch.setattr(local_world, "own_names", lambda: ("node-a.example.org", "10.0.0.7"))
    monkeypatch.setitem(sys.modules, "pynvml", Library([]))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def arguments_of(user: User, line: str) -> Namespace:
    return _parse(["run", str(user.config), *line.split()])


def machines_of(user: User, line: str, **environ: str) -> Machines:
    """The machines of a command line of `stk run`."""
    arguments = arguments_of(user, line)
    return machines_here(arguments, load(user.config, arguments.overrides), environ)


@pytest.mark.parametrize(
    "line, counts, node",
    [
        ("", (1,), 0),
        ("resources.tasks_per_node=2", (2,), 0),
        ("--procs 3", (3,), 0),
        ("--gpus 2", (2,), 0),
        ("--gpus-per-node 3", (3,), 0),
        ("--nnodes 1 --gpus-per-node 3", (3,), 0),
        ("--node-rank 1 --nnodes 2 --master-addr a --gpus-per-node 3,1", (3, 1), 1),
        ("--node-rank 0 --gpus-per-node 3,1", (3, 1), 0),
        ("--node-rank 2 --nnodes 3 --master-addr a --gpus-per-node 2", (2, 2, 2), 2),
        ("--node-rank 1 --nnodes 2 --master-addr a resources.tasks_per_node=2", (2, 2), 1),
        ("--node-rank 0 --gpus-per-node 0,0", (1, 1), 0),
        ('resources.hosts={"node-b":3,"node-a":1}', (3, 1), 1),
        ('resources.hosts={"localhost":3,"node-b":1}', (3, 1), 0),
        ('resources.hosts={"node-b":3} --node-rank 1', (3, 1), 1),
        ('resources.hosts={"node-b":3,"node-a":2} --procs 1', (1,), 0),
        ('resources.hosts={"node-b":3,"node-c":1} --node-rank 0 --nnodes 2 --gpus-per-node 1', (1, 1), 0),
    ],
)
def test_options_determine_process_counts_and_node_number(
    user: User, line: str, counts: tuple[int, ...], node: int
) -> None:
    machines = machines_of(user, line)
    assert (machines.counts, machines.node) == (counts, node)


def test_master_address_is_the_option_or_the_first_host(user: User) -> None:
    machines = machines_of(user, "--node-rank 1 --nnodes 2 --master-addr node-x --master-port 1234")
    assert (machines.master_addr, machines.master_port) == ("node-x", 1234)
    hosts = 'resources.hosts={"node-b":1,"node-a":1}'
    assert (machines_of(user, hosts).master_addr, machines_of(user, hosts).master_port) == ("node-b", 29500)
    assert machines_of(user, f"{hosts} --master-addr 10.0.0.8").master_addr == "10.0.0.8"


@pytest.mark.parametrize(
    "line, said",
    [
        ("--procs 2 --gpus 2", "--procs and --gpus each set the number of processes"),
        ("--procs 2 --nnodes 2", "--procs and --nnodes each set the number of processes"),
        ("--gpus 2 --gpus-per-node 2", "--gpus and --gpus-per-node each set the number of processes"),
        ("--gpus 0", "--gpus is 0: it must be from 1 to train.batch_size, "),
        ("--procs 0", "--procs is 0: it must be from 1 to train.batch_size, "),
        ("--procs 99", "--procs is 99: it must be from 1 to train.batch_size, "),
        ("--nnodes 2", "the number of this one is missing: give --node-rank 0 on the first"),
        ("--nnodes 0", "processes per machine: none"),
        ("--nnodes 2 --node-rank 1", "needs the name or address of node 0: give it as --master-addr"),
        ("--nnodes 2 --node-rank 2 --master-addr a", "expected a number from 0 to 1"),
        (
            "--nnodes 2 --gpus-per-node 3,1,1",
            "--nnodes is 2, but --gpus-per-node has the numbers of 3 machines",
        ),
        ("--gpus-per-node 3,one", "--gpus-per-node is '3,one', expected one whole number for each machine"),
        ("--gpus-per-node 3,-1 --node-rank 0", "each machine needs at least 1"),
        ("--gpus-per-node 50,40 --node-rank 0", "have 90 processes in all: it must be from 1 to"),
        ('resources.hosts={"node-b":1,"node-a":1} --node-rank 0', "this machine is node 1: node-b, node-a"),
        ('resources.hosts={"localhost":1,"node-a":1}', "more than once: localhost and node-a; keep one"),
        ("--nnodes 2 --node-rank 0 --gpus-per-node 3,1 --world-size 5", "--world-size is 5, but 4 processes"),
        ("--procs 2 --world-size 4", "--world-size is 4, but 2 processes make up this world"),
    ],
)
def test_contradicting_options_are_refused_before_there_is_a_run(user: User, line: str, said: str) -> None:
    before = user.listing
    assert said in user.refused("run", user.config, *line.split())
    assert user.listing == before


def test_matching_world_size_is_accepted(user: User) -> None:
    assert machines_of(user, "--procs 2 --world-size 2").count == 2
    assert machines_of(user, "--node-rank 0 --gpus-per-node 3,1", WORLD_SIZE="4").size == 4


def test_wrong_world_size_in_the_environment_is_refused(user: User) -> None:
    with pytest.raises(UserError, match="WORLD_SIZE in the environment is 8, but 2 processes make up"):
        machines_of(user, "--procs 2", WORLD_SIZE="8")


def test_world_size_set_by_a_launcher_is_accepted(user: User) -> None:
    """torchrun in a shell of two tasks starts as many ranks as it was told."""
    check_world_size(2, arguments_of(user, ""), {"RANK": "0", "WORLD_SIZE": "8"})


def test_a_rank_refuses_a_launcher_that_contradicts_the_world_size_of_the_experiment(user: User) -> None:
    resources = Resources(world_size=8, tasks_per_node=8)
    with pytest.raises(UserError, match=r"resources\.world_size is 8, but 2 processes make up this world"):
        check_world_size(2, arguments_of(user, ""), {"RANK": "0", "WORLD_SIZE": "2"}, resources)
    check_world_size(8, arguments_of(user, ""), {"RANK": "0", "WORLD_SIZE": "8"}, resources)


@pytest.mark.parametrize(
    "line", ["--procs 2", "--gpus 1", "--node-rank 0", "--nnodes 1", "--master-addr a", "--gpus-per-node 2"]
)
def test_options_that_start_processes_are_refused_in_a_rank_of_a_launcher(user: User, line: str) -> None:
    with pytest.raises(UserError, match=f"{line.split()[0]} works only if `stk run` starts the processes"):
        refuse_by_hand(arguments_of(user, line))
    refuse_by_hand(arguments_of(user, "--world-size 2"))


# -- GPUs


@pytest.fixture
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Library([gpu(0)]))


@pytest.mark.usefixtures("one_gpu")
@pytest.mark.parametrize(
    "line, environ, count",
    [
        ("resources.tasks_per_node=2", {}, 1),
        ("resources.tasks_per_node=2 train.device=cuda", {}, 1),
        ('resources.groups=[{"nodes":1,"gpus":4}]', {}, 1),
        ("resources.tasks_per_node=1", {}, 1),
        # Processes on the CPU have no limit, and hidden GPUs are not used.
        ("resources.tasks_per_node=2 train.device=cpu", {}, 2),
        ("resources.tasks_per_node=2", {"CUDA_VISIBLE_DEVICES": ""}, 2),
        ("resources.tasks_per_node=2", {"CUDA_VISIBLE_DEVICES": "MIG-1,MIG-2"}, 1),
        ("resources.tasks_per_node=2", {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}, 2),
        ("--procs 1", {}, 1),
        ("--procs 2 train.device=cpu", {}, 2),
    ],
)
def test_a_workstation_starts_as_many_ranks_as_it_has_gpus(
    user: User, line: str, environ: dict[str, str], count: int
) -> None:
    assert machines_of(user, line, **environ).count == count


@pytest.mark.usefixtures("one_gpu")
def test_more_processes_than_gpus_are_refused_before_any_is_started(user: User) -> None:
    with pytest.raises(UserError, match=r"--procs is 2, .*Give at most 1"):
        machines_of(user, "--procs 2")


@pytest.mark.usefixtures("one_gpu")
def test_a_run_says_why_it_has_fewer_processes(user: User) -> None:
    resources = Resources(tasks_per_node=2)
    experiment = replace(load(user.config, []), resources=resources)
    assert told_fewer(local_processes(experiment, {}), resources)
    assert not told_fewer(2, resources)
    assert not told_fewer(1, Resources())


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many GPUs were chosen, each time; there are enough."""
    asked: list[int] = []

    def choose(count: int, environ: dict[str, str]) -> dict[str, str]:
        asked.append(count)
        return {**environ, "CUDA_VISIBLE_DEVICES": "GPU-a"}

    monkeypatch.setattr(idle_gpus, "choose", choose)
    return asked


def environ_of(user: User, line: str) -> dict[str, str]:
    arguments = arguments_of(user, line)
    experiment = load(user.config, arguments.overrides)
    return rank_environ(machines_of(user, line), arguments, experiment)


@pytest.mark.parametrize(
    "line, count",
    [
        ("--gpus 2", 2),
        ("--gpus-per-node 3", 3),
        ("--node-rank 1 --master-addr a --gpus-per-node 3,1", 1),
        ('resources.hosts={"node-b":3,"node-a":2}', 2),
    ],
)
def test_one_gpu_is_chosen_for_each_rank_of_this_machine(
    user: User, chosen: list[int], line: str, count: int
) -> None:
    assert environ_of(user, line)["CUDA_VISIBLE_DEVICES"] == "GPU-a"
    assert chosen == [count]


@pytest.mark.parametrize("line", ["", "--procs 2", "--gpus-per-node 2 train.device=cpu"])
def test_without_a_request_for_gpus_no_gpu_is_chosen(user: User, chosen: list[int], line: str) -> None:
    assert "CUDA_VISIBLE_DEVICES" not in environ_of(user, line)
    assert chosen == []


def no_gpus(*_: Any) -> dict[str, str]:
    raise idle_gpus.NoGpus("no NVIDIA GPU can be chosen on this machine: no driver")


def test_gpus_per_node_counts_processes_on_a_machine_without_gpus(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_gpus, "choose", no_gpus)
    assert "CUDA_VISIBLE_DEVICES" not in environ_of(user, "--gpus-per-node 3")


@pytest.mark.parametrize("line", ["--gpus 1", "--gpus-per-node 1 train.device=cuda"])
def test_requested_gpus_that_are_missing_are_refused(
    user: User, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setattr(idle_gpus, "choose", no_gpus)
    with pytest.raises(UserError, match="no driver"):
        environ_of(user, line)


def test_gpus_granted_by_slurm_are_kept(
    user: User, chosen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "2,5", "CUDA_VISIBLE_DEVICES": "0,1"}.items():
        monkeypatch.setenv(name, value)
    assert environ_of(user, "--gpus 1")["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert chosen == []
    with pytest.raises(UserError, match="--gpus is 3, but Slurm has granted 2 GPUs on this machine"):
        environ_of(user, "--gpus 3")


def test_only_a_job_with_gpus_has_a_grant() -> None:
    assert granted_gpus({"CUDA_VISIBLE_DEVICES": "0,1"}) is None
    assert granted_gpus({"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "0,1"}) is None
    assert granted_gpus({"SLURM_JOB_ID": "7", "SLURM_STEP_GPUS": "3", "CUDA_VISIBLE_DEVICES": "0"}) == 1
