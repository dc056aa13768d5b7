"""A run that continues on this machine keeps the number of processes of its last local attempt."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from slurm.commands.experiments import run as command
from slurm.submission import submit
from tests.slurm.support.user import User
from tests.toolkit.support.nvml import Library, gpu
from toolkit.files import append_json_line
from toolkit.launch.machines.coordination import Nodes
from toolkit.run.run_dir import RunDir

HERE = {"job_id": None, "hosts": ["this"], "world_size": 2, "resumed": False}


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of processes of each start, which starts none."""
    started: list[int] = []

    def detach(_run: RunDir, words: list[str], *_: object) -> int:
        started.append(int(words[-1]))
        return 2**22

    def launch(*given: Any) -> int:
        nodes: Nodes = given[-1]
        started.append(nodes.machines.count)
        return 0

    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(submit, "start_detached", detach)
    monkeypatch.setattr(command, "_launch", launch)
    return started


@pytest.mark.parametrize("name", ["run", "resume"])
@pytest.mark.parametrize(
    "earlier, count",
    [(HERE, 2), ({**HERE, "job_id": "7"}, 1), ({**HERE, "hosts": ["this", "that"]}, 1), ({}, 1)],
    ids=["local", "job", "several machines", "unknown"],
)
def test_run_continues_with_the_processes_of_a_local_attempt(
    user: User, run: RunDir, counts: list[int], name: str, earlier: dict[str, Any], count: int
) -> None:
    append_json_line(run.attempts, {"attempt": 1, **HERE, "world_size": 3})
    append_json_line(run.attempts, {"attempt": 2, "resumed": True, **earlier})
    # It was refused before it trained.
    append_json_line(run.attempts, {"attempt": 3, **HERE, "world_size": 5, "resumed": None})
    assert user.stk(name, run.run_id).code == 0
    assert counts == [count]


@pytest.mark.parametrize("name", ["run", "resume"])
def test_run_with_fewer_gpus_than_before_continues_with_a_process_for_each(
    user: User, run: RunDir, counts: list[int], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    append_json_line(run.attempts, {"attempt": 1, **HERE})
    monkeypatch.setitem(sys.modules, "pynvml", Library([gpu(0)]))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert user.stk(name, run.run_id).code == 0
    assert counts == [1]


def test_given_number_of_processes_replaces_the_earlier_one(
    user: User, run: RunDir, counts: list[int]
) -> None:
    append_json_line(run.attempts, {"attempt": 1, **HERE})
    user.told("run", run.run_id, "--procs", "3")
    user.told("run", user.config)
    user.told("submit", user.config, "--cluster", "local", "resources.tasks_per_node=4")
    assert counts == [3, 1, 4]


def test_fewer_processes_than_the_resources_request_are_not_blamed_on_gpus(
    user: User, counts: list[int]
) -> None:
    more = "resources.tasks_per_node=3"
    user.told("run", user.config, more, "--procs", "2")
    run = user.run(more)
    append_json_line(run.attempts, {"attempt": 1, **HERE})
    answer = user.stk("run", run.run_id)
    assert "2 local processes" in answer.err
    assert "GPU" not in answer.err
    assert counts == [2, 2]
