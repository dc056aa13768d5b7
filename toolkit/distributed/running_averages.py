"""The running averages of BatchNorm and InstanceNorm: one update per step, the same on every rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from toolkit.distributed.process_group import Group

_NOTHING = nullcontext()


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
        self._kinds = _by_dtype(averages_of(model).values())
        # The last column counts the samples.
        columns = sum(each.numel() for kind in self._kinds for each in kind.buffers) + 1
        is_double = any(kind.buffers[0].dtype is torch.float64 for kind in self._kinds)
        dtype = torch.float64 if is_double else torch.float32
        self._changes = torch.zeros(rows, columns if self else 0, dtype=dtype, device=group.device)
        self._one = self._changes.new_ones(1)

    def __bool__(self) -> bool:
        """Whether the model has any."""
        return bool(self._kinds)

    def start(self) -> None:
        """Begin a step."""
        if self._kinds:
            self._changes.zero_()
        for kind in self._kinds:
            torch._foreach_copy_(kind.before, kind.buffers)

    def forward_pass(self, row: int, samples: int) -> AbstractContextManager[None]:
        """Note the change that the block makes, and take it back. Without samples it does not count."""
        return self._taken_back(row, samples) if self._kinds else _NOTHING

    @contextmanager
    def _taken_back(self, row: int, samples: int) -> Iterator[None]:
        try:
            yield
            if samples:
                self._note(row, samples)
        finally:
            for kind in self._kinds:
                torch._foreach_copy_(kind.buffers, kind.before)

    def _note(self, row: int, samples: int) -> None:
        found = [each for kind in self._kinds for each in torch._foreach_sub(kind.buffers, kind.before)]
        changes = torch.cat([*(each.flatten().to(self._one.dtype) for each in found), self._one])
        self._changes[row % len(self._changes)].add_(changes, alpha=samples)

    def update(self) -> None:
        """Change the averages by the mean over the passes of all ranks. Collective if the model has any.

        At least one pass had samples.
        """
        if not self._kinds:
            return
        # A row is zero on all ranks but one, or there is only one.
        self._group.sum(self._changes)
        total = self._changes[0]
        for row in self._changes[1:]:
            total += row
        total /= total[-1].clone()
        for kind in self._kinds:
            sizes = [each.numel() for each in kind.buffers]
            changes, total = total.split([sum(sizes), len(total) - sum(sizes)])
            exact = changes if kind.buffers[0].is_floating_point() else changes.round()
            flat = exact.to(kind.buffers[0].dtype).split(sizes)
            pairs = zip(flat, kind.buffers, strict=True)
            torch._foreach_add_(kind.buffers, [change.view_as(buffer) for change, buffer in pairs])


class _Kind(NamedTuple):
    """Buffers of one dtype, which one kernel of a GPU copies, and their values before a pass."""

    buffers: list[torch.Tensor]
    before: list[torch.Tensor]


def _by_dtype(buffers: Iterable[torch.Tensor]) -> list[_Kind]:
    found: dict[torch.dtype, list[torch.Tensor]] = {}
    for each in dict.fromkeys(buffers):
        found.setdefault(each.dtype, []).append(each)
    return [_Kind(same, [each.clone() for each in same]) for same in found.values()]
