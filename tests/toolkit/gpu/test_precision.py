"""A task in half precision, cast by the lists of CUDA's autocast, which are not those of the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from tests.toolkit.gpu.autocast import cuda_autocast
from tests.toolkit.support.ranks import in_ranks
from tests.toolkit.support.tiny import tiny
from tests.toolkit.support.tiny_training import without_dropout
from toolkit.config import Experiment
from toolkit.system.world import World
from toolkit.task import Task, task_class
from toolkit.training.numerics.arithmetic import autocast_dtype
from toolkit.training.numerics.rng import seed_everything

CPU = torch.device("cpu")
#: What a loss is multiplied with in fp16, as a scaler might: gradients of halves begin at 6e-8.
SCALE = {"fp32": 1.0, "bf16": 1.0, "fp16": 256.0}


def cast_as_on_cuda(world: World) -> dict[str, str]:
    """Types of what some operations return."""
    layer, inputs = torch.nn.Linear(4, 4), torch.ones(3, 4)
    with cuda_autocast(), torch.autocast("cpu", torch.float16):
        states = layer(inputs)
        found = {
            "linear": states,
            "layer_norm": functional.layer_norm(states, (4,)),
            "softmax": states.softmax(1),
            "exp": states.exp(),
            "sum": states.sum(),
            "add": states + 1,
            "tanh": states.tanh(),
        }
    return {name: str(value.dtype).removeprefix("torch.") for name, value in found.items()}


def test_operations_are_cast_by_the_autocast_lists_of_cuda() -> None:
    halves = dict.fromkeys(("linear", "add", "tanh"), "float16")
    singles = dict.fromkeys(("layer_norm", "softmax", "exp", "sum"), "float32")
    assert in_ranks(1, cast_as_on_cuda) == [halves | singles]


def learnt_from(task: Task, precision: str) -> tuple[float, torch.Tensor, bool]:
    """Loss and gradient of a batch, and whether all scores are finite."""
    seed_everything(0)
    model, dtype = task.model(), autocast_dtype(precision, CPU)
    without_dropout(model)
    seed_everything(1)
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        total = task.loss(model, task.collate("train", np.arange(8), CPU)).total
        score = task.score(model.eval(), task.collate("validation", np.arange(8), CPU))
    (total * SCALE[precision]).backward()
    gradients = [p.grad.flatten() / SCALE[precision] for p in model.parameters() if p.grad is not None]
    return total.item(), torch.cat(gradients), bool(torch.isfinite(score.sums).all())


def compare(world: World, experiments: Mapping[str, Experiment]) -> dict[str, dict[str, Any]]:
    """How far loss and gradient in each precision are from those in single precision."""
    found = {}
    with cuda_autocast():
        for kind, experiment in experiments.items():
            task = task_class(experiment)(experiment)
            loss, gradient, _ = learnt_from(task, "fp32")
            for precision in ("bf16", "fp16"):
                own, other, are_finite = learnt_from(task, precision)
                found[f"{kind} in {precision}"] = {
                    "scores are finite": are_finite,
                    "loss": abs(own / loss - 1),
                    "gradient": float((other - gradient).norm() / gradient.norm()),
                }
    return found


def check_half_precision(experiment: Experiment) -> None:
    """In half precision a task learns nearly what it learns in single precision."""
    task_class(experiment).prepare(experiment)
    (found,) = in_ranks(1, compare, {experiment.task.kind: experiment})
    for precision, facts in found.items():
        # A number that is not finite is not below anything.
        assert facts["scores are finite"], precision
        assert facts["loss"] < 0.05, precision
        assert facts["gradient"] < 0.2, precision


def test_loss_and_gradient_in_half_precision_are_close_to_single_precision(tmp_path: Path) -> None:
    check_half_precision(tiny(tmp_path))
