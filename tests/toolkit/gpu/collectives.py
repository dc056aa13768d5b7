"""Collectives like NCCL's on a pretended device: to wait for one orders the device's work and not the host.

gloo computes them. What waits is the next operation on the tensor, as if it were queued behind; a host that
reads nothing goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from tests.toolkit.gpu.device import Device, pretended_device

_COLLECTIVES = ("all_reduce", "broadcast", "all_gather")


class Queued:
    """A work that is queued on the device."""

    def wait(self) -> bool:
        return True

    def is_completed(self) -> bool:
        return False


@contextmanager
def pretended_gpu() -> Iterator[Device]:
    """A pretended device whose ranks sum over something like NCCL; tensors of the host over gloo."""
    with pretended_device() as device, ExitStack() as stack:
        backends: dict[str, str] = {}
        group = _init(dist.init_process_group, backends)
        replaced = {name: _queued(getattr(dist, name), device, backends) for name in _COLLECTIVES}
        replaced |= {"init_process_group": group, "batch_isend_irecv": _exchanged(device, backends)}
        for name, value in replaced.items():
            for module in (dist, distributed_c10d):
                stack.enter_context(patch.object(module, name, value))
        # A future of a tensor on CUDA needs torch to be built for it.
        make = torch.futures.Future.__init__
        stack.enter_context(patch.object(torch.futures.Future, "__init__", lambda future, **_: make(future)))
        yield device


def _init(init: Callable[..., None], backends: dict[str, str]) -> Callable[..., None]:
    """Join with gloo, and remember which backend was asked for on which device."""

    def joined(backend: str, **kwargs: Any) -> None:
        pairs = [part.rpartition(":") for part in backend.split(",")]
        devices = {"gloo": ("cpu",), "nccl": ("cuda",)}
        backends.update(
            {place: name for own, _, name in pairs for place in ((own,) if own else devices[name])}
        )
        # Without it NCCL connects at the first collective, and guesses the device of a barrier.
        device = kwargs.pop("device_id", None)
        assert "cuda" not in backends or device.type == "cuda"
        init("gloo", **kwargs)

    return joined


def _queued(collective: Callable[..., Any], device: Device, backends: dict[str, str]) -> Callable[..., Any]:
    def queued(*args: Any, async_op: bool = False, **kwargs: Any) -> Any:
        tensors = list(_flat((args, kwargs)))
        _check(tensors, device, backends)
        if tensors[0] not in device:
            return collective(*args, async_op=async_op, **kwargs)
        device.settle(tensors)
        with device.paused():
            _queue(device, tensors, collective(*args, async_op=True, **kwargs))
        return Queued() if async_op else None

    return queued


def _exchanged(device: Device, backends: dict[str, str]) -> Callable[..., Any]:
    exchange = dist.batch_isend_irecv

    def exchanged(operations: list[dist.P2POp]) -> list[Any]:
        tensors = [each.tensor for each in operations]
        _check(tensors, device, backends)
        if tensors[0] not in device:
            return list(exchange(operations))
        device.settle(tensors)
        with device.paused():
            for tensor, work in zip(tensors, exchange(operations), strict=True):
                _queue(device, [tensor], work)
        return [Queued() for _ in operations]

    return exchanged


def _queue(device: Device, tensors: list[torch.Tensor], work: Any) -> None:
    for tensor in tensors:
        device.pending.setdefault(tensor.untyped_storage()._cdata, []).append(work)


def _check(tensors: list[torch.Tensor], device: Device, backends: dict[str, str]) -> None:
    """A backend sums only what lies on its device."""
    places = {tensor.device.type for tensor in tensors}
    assert len(places) == 1, f"tensors on {places} in one collective"
    wanted = {"cpu": "gloo", "cuda": "nccl"}[places.pop()]
    assert wanted in backends.values(), f"no {wanted} for a tensor on {tensors[0].device}: {backends}"


def _flat(values: Any) -> Iterator[torch.Tensor]:
    return (each for each in torch.utils._pytree.tree_leaves(values) if isinstance(each, torch.Tensor))
