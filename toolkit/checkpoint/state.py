"""The state of training: progress, and the tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from toolkit.checkpoint.optimizer_state import OptimizerState


@dataclass(slots=True)
class Progress:
    """The progress of training: everything but tensors, as JSON values.

    step               updates done
    sums               sums for the next logged line of training metrics: loss, count, and the task's own
    best_value         best validation metric so far
    best_loss          validation loss at the same step, which breaks ties; may be infinite or NaN; None in
                       old checkpoints
    best_step          step of the best value
    since_best         evaluations since best_value was first reached
    awaits_evaluation  whether a stop interrupted the evaluation after this step
    chain              hash of all steps so far: their samples and losses, as 32 hexadecimal digits
    """

    step: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    best_value: float | None = None
    best_loss: float | None = None
    best_step: int | None = None
    since_best: int = 0
    awaits_evaluation: bool = False
    chain: str = ""

    def judge(self, value: float, loss: float, goal: str) -> None:
        """Update the best evaluation. Of equal metrics, that with the lower or only finite loss is better."""
        best, low = self.best_value, self.best_loss
        is_better = best is None or (value < best if goal == "min" else value > best)
        is_lower = low is not None and math.isfinite(loss) and (loss < low or not math.isfinite(low))
        is_tie = value == best and is_lower
        if math.isfinite(value) and (is_better or is_tie):
            self.best_value, self.best_step, self.best_loss = value, self.step, loss
        self.since_best = 0 if math.isfinite(value) and is_better else self.since_best + 1

    def restore(self, stored: dict[str, Any]) -> None:
        """Set the stored values, in place."""
        for name, value in stored.items():
            setattr(self, name, value)


@dataclass(slots=True)
class TrainState:
    """Everything that a checkpoint holds."""

    progress: Progress
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    _optimizer_state: OptimizerState = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._optimizer_state = OptimizerState(self.model, self.optimizer)

    def training_tensors(self) -> dict[str, torch.Tensor]:
        """Tensors besides the weights: the optimizer's, and buffers that are not in state_dict."""
        tensors = {f"buffer/{name}": buffer for name, buffer in self._unsaved_buffers().items()}
        return tensors | self._optimizer_state.tensors()

    def load_training_tensors(self, tensors: dict[str, torch.Tensor]) -> None:
        """Restore the result of training_tensors, except caches that forward recomputes."""
        for name, buffer in self._unsaved_buffers().items():
            kept = tensors.get(f"buffer/{name}")
            if kept is not None and kept.shape == buffer.shape:
                buffer.copy_(kept)
        self._optimizer_state.load(tensors)

    def _unsaved_buffers(self) -> dict[str, torch.Tensor]:
        saved = self.model.state_dict().keys()
        return {name: buffer for name, buffer in self.model.named_buffers() if name not in saved}
