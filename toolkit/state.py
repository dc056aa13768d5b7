"""What training is: how far it is, and the tensors that this has led to."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import nn


@dataclass(slots=True)
class Progress:
    """How far training is: everything but tensors, all of it JSON.

    step               updates done
    sums               metrics of training since the last logged line: loss, count, and the task's
    best_value         best validation metric so far, and the step it was seen at
    since_best         evaluations since then
    chain              hash of all steps so far: their samples and losses, as 32 hexadecimal digits
    """

    step: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    best_value: float | None = None
    best_step: int | None = None
    since_best: int = 0
    chain: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def restore(self, stored: dict[str, Any]) -> None:
        """Take over stored values, in place."""
        for name, value in stored.items():
            setattr(self, name, value)


@dataclass(slots=True)
class TrainState:
    """Everything that a checkpoint holds."""

    progress: Progress
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler

    def training_tensors(self) -> dict[str, torch.Tensor]:
        """Tensors besides the weights: the optimizer's, and buffers that state_dict leaves out."""
        tensors = {f"buffer/{name}": buffer for name, buffer in self._unsaved_buffers().items()}
        for name, parameter in self._optimized():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                if isinstance(value, torch.Tensor):
                    tensors[f"optimizer/{name}/{key}"] = value
        return tensors

    def load_training_tensors(self, tensors: dict[str, torch.Tensor]) -> None:
        """Put back what training_tensors gave. Raises KeyError where a buffer is missing."""
        for name, buffer in self._unsaved_buffers().items():
            buffer.copy_(tensors[f"buffer/{name}"])
        state: dict[int, dict[str, torch.Tensor]] = {}
        for index, (name, _) in enumerate(self._optimized()):
            prefix = f"optimizer/{name}/"
            kept = {key[len(prefix) :]: value for key, value in tensors.items() if key.startswith(prefix)}
            if kept:
                state[index] = kept
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})

    def _unsaved_buffers(self) -> dict[str, torch.Tensor]:
        saved = self.model.state_dict().keys()
        return {name: buffer for name, buffer in self.model.named_buffers() if name not in saved}

    def _optimized(self) -> list[tuple[str, nn.Parameter]]:
        """Parameters in the optimizer's order, with their names in the model."""
        names = {parameter: name for name, parameter in self.model.named_parameters()}
        return [(names[p], p) for group in self.optimizer.param_groups for p in group["params"]]
