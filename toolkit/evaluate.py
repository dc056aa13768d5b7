"""Evaluation: sharded over the ranks and exact, whatever their number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from toolkit.config import schema
from toolkit.data.batches import evaluation_plan
from toolkit.distributed import Group
from toolkit.tasks.base import Evaluation, Task


@torch.no_grad()
def evaluate(
    task: Task,
    model: nn.Module,
    split: str,
    group: Group,
    settings: schema.Evaluation,
    precision: torch.dtype | None,
    on_batch: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Score a whole split. Collective; every rank gets the same result.

    The batches are planned without regard to the ranks, each is scored by one rank, and their sums
    are added in the order of the plan: so the result does not depend on the number of ranks. Every
    sample is counted exactly once, and that is checked. on_batch is called after each batch.
    """
    samples = task.splits[split]
    plan = evaluation_plan(settings, samples.lengths)
    sums = np.zeros((plan.steps, len(task.score_sums)))
    outputs = np.zeros((len(samples), task.output_width), dtype=np.float32)
    seen = np.zeros(len(samples))
    model.eval()
    for number in range(group.world.rank, plan.steps, group.world.size):
        indices = plan.step(number)
        with torch.autocast(group.device.type, precision, enabled=precision is not None):
            score = task.score(model, task.collate(split, indices, group.device))
        sums[number] = score.sums.cpu().numpy()
        outputs[indices] = score.outputs.float().cpu().numpy()
        seen[indices] += 1
        on_batch()
    model.train()
    assert (group.gather_rows(seen) == 1).all(), "an evaluation must count every sample exactly once"
    return Evaluation(group.gather_rows(sums).sum(axis=0), group.gather_rows(outputs))
