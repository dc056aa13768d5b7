"""Every switch of every model: two ranks learn the same with either reduction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.toolkit.support.ranks import in_ranks
from tests.toolkit.support.tiny_training import without_dropout
from tests.toolkit.workloads.every_task.test_task_contract import SAMPLES, kinds
from toolkit.config import Experiment
from toolkit.config.fields import limits
from toolkit.distributed import process_group
from toolkit.distributed.process_group import Group
from toolkit.distributed.step_sync import StepSync
from toolkit.reliability.stop import NeverStop
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.task import task_class
from toolkit.training.assembly.build_training import build_training
from toolkit.training.loop import plan_of
from toolkit.training.output.progress_display import Display
from toolkit.training.step.take_step import take_step

_STEPS = 2
#: No randomness, and updates in proportion to the gradients: only rounding makes a difference.
_CALM = (
    "train.logical_ranks=4",
    "optimizer={kind: sgd, lr: 0.05, weight_decay: 0.1}",
    "train.clip_norm=null",
)
#: Other kinds are slow.
_QUICK = ("text_classification",)
#: With the model and the loss of another sample, or one of its switches turned.
_SAME_MODEL = (
    "entity_disambiguation, cached vectors, steps of tokens",
    "sec_nmt, characters without white space",
    "sed_sequence",
    "sed_sequence, graph",
    "tokenization_repair_plus, detection on fixed repairs, steps of tokens",
)


def switches(section: Any) -> Iterator[str]:
    """Each other value of the fields of a section that are true or false, or one of a few."""
    for field in fields(section):
        value = getattr(section, field.name)
        if isinstance(value, bool):
            yield f"{field.name}={json.dumps(not value)}"
        else:
            others = (choice for choice in limits(field).choices if choice != value)
            yield from (f"{field.name}={choice}" for choice in others)


def calm(experiment: Experiment) -> Iterator[str]:
    """Overrides that remove randomness from an experiment."""
    yield from _CALM
    for name in ("mask_mention", "mask_title"):
        if hasattr(experiment.task, name):
            yield f"task.{name}=false"


def of_kind(kind: str, folder: Path) -> dict[str, Experiment]:
    """The small experiment of a kind, unchanged and with each switch of its model turned."""
    make, plain = SAMPLES[kind], SAMPLES[kind](folder)
    turned = {switch: (f"model.{switch}",) for switch in switches(plain.model)}
    return {
        switch: make(folder, *calm(plain), *overrides) for switch, overrides in {"": (), **turned}.items()
    }


def with_reduction(experiment: Experiment, name: str) -> Experiment:
    return replace(experiment, train=replace(experiment.train, reduction=name))


def learnt(group: Group, experiment: Experiment, folder: Path) -> dict[str, torch.Tensor]:
    """The weights after a few steps."""
    task = task_class(experiment)(experiment)
    training = build_training(RunDir(folder), experiment, task, group, Display())
    without_dropout(training.state.model)
    sync = StepSync(group.device, training.micro_batches, task.train_sums)
    plan = plan_of(training, 0)
    with closing(training.reduction):
        for position in range(_STEPS):
            take_step(training, sync, plan, position, NeverStop())
    return {name: value.detach().clone() for name, value in training.state.model.named_parameters()}


def differences(world: World, folder: Path, experiments: dict[str, Experiment]) -> dict[str, list[str]]:
    """The parameters that differ between the two reductions by more than rounding, of each experiment."""
    found = {}
    torch.set_num_threads(1)
    with process_group.join(RunDir(folder), world, next(iter(experiments.values())).train) as group:
        for name, experiment in experiments.items():
            exact, fast = (
                learnt(group, with_reduction(experiment, each), folder) for each in ("exact", "fast")
            )
            found[name] = [
                each for each in exact if not torch.allclose(exact[each], fast[each], rtol=1e-3, atol=1e-5)
            ]
        group.barrier()
    return found


@pytest.mark.parametrize("kind", kinds(_QUICK, _SAME_MODEL)[: -len(_SAME_MODEL)])
def test_both_reductions_give_the_same_weights_with_every_switch(kind: str, tmp_path: Path) -> None:
    experiments = of_kind(kind, tmp_path)
    for experiment in experiments.values():
        task_class(experiment).prepare(experiment)
    for found in in_ranks(2, differences, tmp_path / "run", experiments):
        assert found == {switch: [] for switch in experiments}
