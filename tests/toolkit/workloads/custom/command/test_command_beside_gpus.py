"""A command chooses its devices itself, so it may have more processes than there are GPUs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from slurm.cli import _parse
from slurm.commands.experiments.local_world import machines_here
from slurm.config.rank_count import earlier_processes
from slurm.submission.checks.early_checks import ranks_without_gpus
from tests.toolkit.support.nvml import Library, gpu
from toolkit.config import Experiment, load
from toolkit.files import append_json_line
from toolkit.run.run_dir import RunDir


@pytest.fixture(autouse=True)
def _one_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Library([gpu(0)]))
    monkeypatch.chdir(tmp_path)


def experiment_of(*words: str) -> Experiment:
    arguments = _parse([*words, "--", "true"])
    return load(Path(arguments.config), arguments.overrides)


def test_local_run_may_have_more_processes_than_gpus() -> None:
    arguments = _parse(["run", "--procs", "2", "--", "true"])
    assert machines_here(arguments, experiment_of("run"), {}).count == 2


def test_local_run_continues_with_more_processes_than_gpus(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    append_json_line(run.attempts, {"attempt": 1, "hosts": ["this"], "world_size": 2, "resumed": False})
    assert earlier_processes(run, experiment_of("run"), {}) == 2


def test_a_job_may_have_more_ranks_than_gpus() -> None:
    experiment = experiment_of("plan", "resources.tasks_per_node=2", "resources.gres=gpu:1")
    assert [*ranks_without_gpus(experiment)] == []
