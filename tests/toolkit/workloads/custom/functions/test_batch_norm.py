"""A model of the user with BatchNorm: its running averages are the same on any number of processes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.toolkit.support.tiny_training import Attempt, Lab
from tests.toolkit.workloads.custom.own_digits import MODELS
from toolkit.config import Experiment, load
from toolkit.run.run_dir import WEIGHTS
from toolkit.testing.contract import CHECKS, new_model, open_task, same_results


@pytest.fixture
def experiment(config: Path) -> Experiment:
    models = config.parent / "my_project" / "models.py"
    models.write_text(MODELS.replace("nn.ReLU()", "nn.BatchNorm1d(hidden), nn.ReLU()"))
    return load(config, ["train.batch_size=24", "train.epochs=2"])


def test_two_processes_and_a_stop_change_no_byte(experiment: Experiment, tmp_path: Path) -> None:
    lab = Lab(tmp_path / "lab")
    undisturbed = lab.train(experiment, Attempt())
    stopped = lab.train(experiment, Attempt(size=2, stop_after=4), Attempt())
    same_results(stopped, undisturbed)
    weights = load_file(undisturbed.best / WEIGHTS)
    assert weights["1.num_batches_tracked"] in (5, 10)
    assert torch.count_nonzero(weights["1.running_mean"])


def test_fast_processes_have_the_same_averages_and_a_stop_changes_no_byte(
    experiment: Experiment, tmp_path: Path
) -> None:
    """A comparison of the ranks after each step would find different averages."""
    lab = Lab(tmp_path / "lab")
    train = replace(experiment.train, reduction="fast", check_ranks_every=1)
    fast = replace(experiment, train=train)
    undisturbed = lab.train(fast, Attempt(size=2))
    same_results(lab.train(fast, Attempt(size=2, stop_after=4), Attempt(size=2)), undisturbed)
    assert torch.count_nonzero(load_file(undisturbed.best / WEIGHTS)["1.running_mean"])


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_task_contract_after_a_pass(experiment: Experiment, check) -> None:
    task = open_task(experiment)
    model = new_model(task)
    model(torch.randn(5, 64))
    check(experiment, task, model)


def test_parts_of_one_sample_are_refused_before_the_first_step(
    experiment: Experiment, config: Path, tmp_path: Path
) -> None:
    """The last of six steps has 20 samples in 16 parts."""
    larger = load(config, ["train.batch_size=25", "train.logical_ranks=16"])
    with pytest.raises(AssertionError, match=r"UserError: .*20 samples in 16 parts.*train\.logical_ranks"):
        Lab(tmp_path / "lab").train(larger, Attempt())
