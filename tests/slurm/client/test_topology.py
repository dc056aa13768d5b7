"""Ranks and worlds from environments that a real cluster (22.05) gave to real processes."""

from __future__ import annotations

import os

import pytest

from slurm.client import topology
from slurm.client.topology import is_rank, scrub, world_from_step
from tests.slurm.support.environments import ENVIRONMENTS
from toolkit.errors import SchedulerError

UNEVEN_JOB = [f"step over both components of an uneven job, rank {rank}" for rank in range(5)]


@pytest.fixture(autouse=True)
def without_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "_has_terminal", lambda: False)


@pytest.fixture
def on_terminal(without_terminal: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "_has_terminal", lambda: True)


def of_another_process(name: str) -> dict[str, str]:
    """The environment of a process that is not the one which srun started."""
    return ENVIRONMENTS[name] | {"SLURM_TASK_PID": "0"}


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in ENVIRONMENTS if "rank" in name and name != "srun -n 4 --pty, rank 0"),
        "srun of 1 task",
    ],
)
def test_a_task_of_a_step_is_a_rank(name: str) -> None:
    assert is_rank(of_another_process(name))


@pytest.mark.parametrize(
    "name",
    [
        "salloc",
        "salloc with use_interactive_step",
        "srun --pty",
        "srun -n 4 --pty, rank 0",
        # A terminal of `srun jupyter lab`.
        "srun of 1 task",
    ],
)
def test_a_shell_in_an_allocation_is_no_rank(name: str, on_terminal: None) -> None:
    assert not is_rank(of_another_process(name))


@pytest.mark.parametrize(
    "name",
    ["batch script of 4 tasks", "batch script of an uneven job", "batch script submitted within srun --pty"],
)
def test_a_batch_script_is_no_rank(name: str) -> None:
    assert not is_rank(of_another_process(name))


@pytest.mark.parametrize("name", ["srun -n 4 --pty, rank 0", "srun of 1 task"])
def test_the_program_that_srun_itself_started_is_a_rank_even_on_a_terminal(
    name: str, on_terminal: None
) -> None:
    assert is_rank(ENVIRONMENTS[name] | {"SLURM_TASK_PID": str(os.getpid())})


def test_a_task_among_several_without_pty_is_a_rank_even_on_a_terminal(on_terminal: None) -> None:
    """A program such as unbuffer gives each task a terminal."""
    assert is_rank(of_another_process("srun of 4 tasks with bash -c, rank 2"))


def test_process_outside_a_job_is_no_rank() -> None:
    assert not is_rank({"PATH": "/bin", "SLURM_CONF": "/etc/slurm.conf"})


def test_a_step_that_keeps_the_jobs_task_count_is_still_a_rank() -> None:
    """`srun --preserve-env` leaves SLURM_NTASKS as the job has it."""
    environ = ENVIRONMENTS["step of 2 tasks in a batch script of 4, rank 1"] | {"SLURM_NTASKS": "4"}
    assert is_rank(environ)


def test_ranks_on_uneven_hosts_count_the_tasks_of_their_own_host() -> None:
    worlds = [world_from_step(ENVIRONMENTS[f"srun of 4 tasks on 3 hosts, rank {rank}"]) for rank in range(4)]
    assert [(w.rank, w.size, w.local_rank, w.local_size, w.node, w.nodes) for w in worlds] == [
        (0, 4, 0, 2, 0, 3),
        (1, 4, 1, 2, 0, 3),
        (2, 4, 0, 1, 1, 3),
        (3, 4, 0, 1, 2, 3),
    ]


def test_the_world_of_an_uneven_job_has_no_gap() -> None:
    """Its second component comes first by name, so that SLURM_STEP_TASKS_PER_NODE is in another order."""
    worlds = [world_from_step(ENVIRONMENTS[name]) for name in UNEVEN_JOB]
    assert [(w.rank, w.size, w.local_rank, w.local_size, w.node, w.nodes) for w in worlds] == [
        (0, 5, 0, 3, 0, 3),
        (1, 5, 1, 3, 0, 3),
        (2, 5, 2, 3, 0, 3),
        (3, 5, 0, 1, 1, 3),
        (4, 5, 0, 1, 2, 3),
    ]
    assert len({world.nonce for world in worlds}) == 1


@pytest.mark.parametrize("name", [*UNEVEN_JOB, "srun of 4 tasks on 3 hosts, rank 0"])
def test_without_the_list_of_local_ranks_tasks_are_counted_by_host_name(name: str) -> None:
    complete = ENVIRONMENTS[name]
    environ = {key: value for key, value in complete.items() if key != "SLURM_GTIDS"}
    assert world_from_step(environ) == world_from_step(complete)


def test_a_step_smaller_than_its_job_is_a_world_of_its_own() -> None:
    world = world_from_step(ENVIRONMENTS["step of 2 tasks in a batch script of 4, rank 1"])
    assert (world.rank, world.size, world.local_size, world.nodes) == (1, 2, 2, 1)


def test_array_tasks_steps_and_restarts_have_different_nonces() -> None:
    environ = ENVIRONMENTS["array task 0 after a requeue, rank 0"]
    first = {key: value for key, value in environ.items() if key != "SLURM_RESTART_COUNT"}
    assert environ["SLURM_RESTART_COUNT"] == "1"
    variants = [
        environ,
        first,
        first | {"SLURM_STEP_ID": "1"},
        ENVIRONMENTS["array task 1 after a requeue, rank 0"],
    ]
    nonces = [world_from_step(variant).nonce for variant in variants]
    assert nonces == ["13.0.1", "13.0.0", "13.1.0", "12.0.1"]
    assert (world_from_step(environ).job, world_from_step(environ).restart) == ("13", 1)


@pytest.mark.parametrize(
    "name, names",
    [
        ("srun of 4 tasks on 3 hosts, rank 0", ("rack1node01", "rack1node02")),
        ("srun of 1 task", ("rack1node01",)),
    ],
)
def test_a_world_knows_its_host_and_another_one_by_slurms_names(name: str, names: tuple[str, ...]) -> None:
    assert world_from_step(ENVIRONMENTS[name]).known_as == names
    launched = {**ENVIRONMENTS[name], "SLURM_LAUNCH_NODE_IPADDR": "10.117.3.11"}
    assert world_from_step(launched).known_as == (*names, "10.117.3.11")


def test_unreadable_host_list_leaves_only_the_own_host() -> None:
    environ = {**ENVIRONMENTS["srun of 1 task"], "SLURM_STEP_NODELIST": "rack1node[0"}
    assert world_from_step(environ).known_as == ("rack1node01",)


def test_a_world_knows_how_many_gpus_its_step_was_granted_on_this_host() -> None:
    environ = ENVIRONMENTS["srun of 1 task"]
    assert world_from_step(environ | {"SLURM_STEP_GPUS": "2,5"}).gpus == 2
    assert world_from_step(environ | {"SLURM_STEP_GPUS": "5", "SLURM_GPUS_ON_NODE": "2"}).gpus == 1
    assert world_from_step(environ | {"SLURM_GPUS_ON_NODE": "2"}).gpus == 2
    # A batch script's own, of another host.
    assert world_from_step(environ | {"SLURM_JOB_GPUS": "2,5"}).gpus == 0


@pytest.mark.parametrize(
    "name",
    [
        "SLURM_JOB_ID",
        "SLURM_STEP_ID",
        "SLURM_PROCID",
        "SLURM_LOCALID",
        "SLURM_NODEID",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_STEP_NUM_NODES",
    ],
)
def test_a_missing_variable_is_named(name: str) -> None:
    environ = {key: value for key, value in ENVIRONMENTS["srun of 1 task"].items() if key != name}
    with pytest.raises(SchedulerError, match=name):
        world_from_step(environ)


@pytest.mark.parametrize(
    "name, value",
    [
        ("SLURM_PROCID", "4"),
        ("SLURM_PROCID", "one"),
        ("SLURM_LOCALID", "2"),
        ("SLURM_GTIDS", "2,3"),
        ("SLURM_NODEID", "3"),
        ("SLURM_STEP_NUM_TASKS", "1"),
    ],
)
def test_variables_that_contradict_each_other_are_refused(name: str, value: str) -> None:
    environ = ENVIRONMENTS["srun of 4 tasks on 3 hosts, rank 1"]
    with pytest.raises(SchedulerError):
        world_from_step(environ | {name: value})


def test_counts_that_do_not_match_the_hosts_are_refused() -> None:
    environ = dict(ENVIRONMENTS["srun of 4 tasks on 3 hosts, rank 0"], SLURM_STEP_TASKS_PER_NODE="2,1")
    del environ["SLURM_GTIDS"]
    with pytest.raises(SchedulerError, match="SLURM_STEP_TASKS_PER_NODE"):
        world_from_step(environ)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_scrubbed_environment_is_that_of_a_process_outside_any_job(name: str) -> None:
    clean = scrub(
        ENVIRONMENTS[name] | {"PATH": "/bin", "RANK": "1", "MASTER_PORT": "1", "SLURM_JWT": "token"}
    )
    assert clean == {"PATH": "/bin", "SLURM_JWT": "token", "SLURM_CONF": "/etc/slurm/slurm.conf"}
    assert not is_rank(clean)


@pytest.mark.parametrize(
    "name",
    [
        *("SLURMD_NODENAME", "SRUN_CPUS_PER_TASK", "SBATCH_PARTITION", "SALLOC_ACCOUNT", "PMI_RANK"),
        *("PMIX_RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK"),
        *("MASTER_ADDR", "STK_RENDEZVOUS", "STK_LAUNCHER"),
        *("STK_RUN_DIR", "STK_NONCE", "STK_WATCHER", "STK_RESTARTER", "STK_ATTEMPT"),
        *("STK_CHECKPOINT_DIR", "STK_LATEST_CHECKPOINT", "STK_STOP_FILE", "STK_PARAMS"),
    ],
)
def test_variables_of_a_launcher_are_scrubbed(name: str) -> None:
    assert scrub({name: "1", "CUDA_VISIBLE_DEVICES": "0"}) == {"CUDA_VISIBLE_DEVICES": "0"}
