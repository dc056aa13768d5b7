"""Is `stk run` one rank of a launcher around it, or does it start the ranks itself?"""

from __future__ import annotations

import pytest

from slurm.client.topology import step_nonce
from slurm.commands.experiments.run import is_forced_local, world_of_this_process
from slurm.job.stop_signals import JobStop
from tests.slurm.support.environments import ENVIRONMENTS
from tests.slurm.support.user import Answer, User
from toolkit.errors import RunFailed, UserError
from toolkit.exit_codes import ExitCode
from toolkit.run.attempts.refusal import read_refusal


@pytest.mark.parametrize("name", ["salloc", "srun --pty", "batch script of 4 tasks"])
def test_a_shell_in_an_allocation_starts_its_own_processes(name: str) -> None:
    assert world_of_this_process(ENVIRONMENTS[name]) is None


def test_a_task_of_a_step_and_a_process_of_torchrun_are_ranks() -> None:
    world = world_of_this_process(ENVIRONMENTS["srun of 4 tasks on 3 hosts, rank 2"])
    assert (world.rank, world.size) == (2, 4)
    torchrun = {
        "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "localhost", "MASTER_PORT": "29500",
    }  # fmt: skip
    world = world_of_this_process(torchrun)
    assert (world.rank, world.size, world.master_port) == (1, 2, 29500)


def test_task_with_a_wrong_rank_leaves_the_reason_for_the_others(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `srun env SLURM_PROCID=0 stk run` starts it."""
    environ = {**ENVIRONMENTS["srun of 4 tasks on 3 hosts, rank 2"], "SLURM_PROCID": "0"}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    answer = user.stk("run", user.config)
    assert (answer.code, answer.out) == (3, "")
    assert "SLURM_PROCID" in answer.err
    told = read_refusal(user.run(), step_nonce(environ))
    assert "SLURM_PROCID" in told


@pytest.mark.parametrize(
    "error", [RuntimeError("no labels"), FileNotFoundError(2, "not there", "x.tsv"), RunFailed("no labels")]
)
def test_failed_rank_of_torchrun_ends_with_the_status_of_a_failed_run(
    user: User, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr("slurm.job.task.run_rank", fail)
    assert as_rank(user, monkeypatch).code == ExitCode.FAILED


def test_rank_of_torchrun_that_has_saved_ends_as_interrupted(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm.job.task.run_rank", lambda *_: ExitCode.YIELDED)
    assert as_rank(user, monkeypatch).code == ExitCode.INTERRUPTED


def as_rank(user: User, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """The answer of `stk run` as the only process of torchrun."""
    monkeypatch.setattr(JobStop, "install", lambda stop: stop)
    alone = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
    for name, value in {**alone, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    return user.stk("run", user.config)


def test_forced_local_run_is_never_a_rank() -> None:
    for environ in (ENVIRONMENTS["srun of 4 tasks on 3 hosts, rank 2"], {"RANK": "1", "WORLD_SIZE": "2"}):
        assert world_of_this_process({**environ, "STK_FORCE_LOCAL": "yes"}) is None


def test_only_true_words_force_a_local_run() -> None:
    words = ("1", "true", "True", "YES", "on", " on ", "", "0", "false", "No", "OFF")
    assert [word for word in words if is_forced_local({"STK_FORCE_LOCAL": word})] == [*words[:6]]
    assert not is_forced_local({})


def test_other_words_for_a_local_run_are_refused_with_the_valid_ones() -> None:
    with pytest.raises(UserError, match=r"STK_FORCE_LOCAL is 'maybe': use one of 1, true, yes, on or 0"):
        is_forced_local({"STK_FORCE_LOCAL": "maybe"})
