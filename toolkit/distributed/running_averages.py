"""The running averages of BatchNorm and InstanceNorm: one update per step, the same on every rank."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from toolkit.distributed.process_group import Group


def averages_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """The buffers of a model that are running averages, or count their updates, by name."""
    return {
        f"{path}.{name}".lstrip("."): buffer
        for path, module in model.named_modules()
        if isinstance(module, _NormBase) and module.track_running_stats
        for name, buffer in module.named_buffers(recurse=False)
    }


class RunningAverages:
    """The running averages of a model in training.

    Each forward pass normalises its samples by their own mean and variance, and changes the averages. That
    change is taken back. At the end of the step, the mean of the changes is made, weighted by samples.

    rows  number of sums over the passes of a step, which are added in one order. With one for each logical
          rank, the result does not depend on the number of processes
    """

    def __init__(self, model: nn.Module, group: Group, rows: int) -> None:
        self._group = group
        self._buffers = list(dict.fromkeys(averages_of(model).values()))
        self._before = [each.clone() for each in self._buffers]
        # The last column counts the samples.
        columns = sum(each.numel() for each in self._buffers) + 1
        kinds = [each.dtype for each in self._buffers if each.is_floating_point()]
        dtype = torch.float64 if torch.float64 in kinds else torch.float32
        self._changes = torch.zeros(rows, columns if self else 0, dtype=dtype, device=group.device)

    def __bool__(self) -> bool:
        """Whether the model has any."""
        return bool(self._buffers)

    def start(self) -> None:
        """Begin a step."""
        self._changes.zero_()
        for before, buffer in zip(self._before, self._buffers, strict=True):
            before.copy_(buffer)

    @contextmanager
    def forward_pass(self, row: int, samples: int) -> Iterator[None]:
        """Note the change that the block makes, and take it back. Without samples it does not count."""
        try:
            yield
            if self and samples:
                changes = [
                    (buffer - before).flatten().to(self._changes.dtype)
                    for before, buffer in zip(self._before, self._buffers, strict=True)
                ]
                one = torch.ones(1, dtype=self._changes.dtype, device=self._changes.device)
                self._changes[row % len(self._changes)].add_(torch.cat([*changes, one]), alpha=samples)
        finally:
            for before, buffer in zip(self._before, self._buffers, strict=True):
                buffer.copy_(before)

    @torch.no_grad()
    def update(self) -> None:
        """Change the averages by the mean over the passes of all ranks. Collective if the model has any.

        At least one pass had samples.
        """
        if not self:
            return
        # A row is zero on all ranks but one, or there is only one.
        self._group.sum(self._changes)
        total = self._changes[0]
        for row in self._changes[1:]:
            total += row
        *changes, _ = (total / total[-1]).split([*(each.numel() for each in self._buffers), 1])
        for buffer, change in zip(self._buffers, changes, strict=True):
            exact = change if buffer.is_floating_point() else change.round()
            buffer.add_(exact.view_as(buffer).to(buffer.dtype))
