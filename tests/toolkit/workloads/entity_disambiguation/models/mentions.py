"""Batches and models of the generated entities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.toolkit.workloads.entity_disambiguation.entity_files import tiny_co_mention, tiny_entities
from toolkit.workloads.entity_disambiguation.models.mention_batch import MentionBatch
from toolkit.workloads.entity_disambiguation.task import EntityDisambiguationTask

CPU = torch.device("cpu")


def opened(folder: Path, *overrides: str, co_mention: bool = False) -> EntityDisambiguationTask:
    """The task of the tiny experiment, prepared."""
    experiment = (tiny_co_mention if co_mention else tiny_entities)(folder, *overrides)
    EntityDisambiguationTask.prepare(experiment)
    return EntityDisambiguationTask(experiment)


def model_of(task: EntityDisambiguationTask) -> Any:
    """A model for evaluation, with the same weights each time."""
    torch.manual_seed(0)
    return task.model().eval()


def batch_of(task: EntityDisambiguationTask, *indices: int) -> MentionBatch:
    return task.collate("train", np.array(indices), CPU)


@torch.no_grad()
def scores(model: Any, batch: MentionBatch, *rows: int) -> torch.Tensor:
    """The scores of some rows of a batch, by default of all rows."""
    which: torch.Tensor = torch.tensor(rows or range(len(batch.tokens)))
    found: torch.Tensor = model(which, batch)
    return found
