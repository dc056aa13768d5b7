"""A GPU that is pretended on the CPU: what lies on it is marked, and each wait for it is noted.

Storages carry the marks. An operation that mixes marked and unmarked tensors fails, as it would on CUDA, and
one that torch cannot compute the same way twice fails under `train.deterministic`. All numbers are those of
the CPU: its generator and its kernels make them.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils._device import _device_constructors
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

CUDA = torch.device("cuda", 0)
_HOME = str(Path(__file__).parents[3])
_aten = torch.ops.aten

#: Operations whose output's size depends on values, so that the host has to wait for them.
_WAITING = {
    _aten._local_scalar_dense, _aten.nonzero, _aten.masked_select, _aten._unique2, _aten.unique_dim,
    _aten.unique_consecutive, _aten.bincount, _aten.equal, _aten.is_nonzero,
}  # fmt: skip
#: Those without a deterministic kernel on CUDA (torch.use_deterministic_algorithms), as far as a task may
#: call them; cumsum of floating-point numbers and bincount with weights, too.
_AT_RANDOM = {
    _aten.histc, _aten.put_, _aten.kthvalue, _aten.median, _aten.scatter_reduce,
    _aten._ctc_loss_backward, _aten.adaptive_avg_pool2d, _aten.upsample_linear1d_backward,
    _aten.upsample_bilinear2d_backward, _aten.reflection_pad1d_backward, _aten.adaptive_max_pool2d_backward,
}  # fmt: skip
_FACTORIES = (
    "arange", "as_tensor", "empty", "empty_strided", "eye", "full", "linspace", "ones", "rand", "randint",
    "randn", "randperm", "tensor", "tril_indices", "triu_indices", "zeros",
)  # fmt: skip
_FROM_HOST = ("as_tensor", "tensor")


class Device(TorchDispatchMode):
    """The device: which storages lie on it, what is still being summed on it, and who waited for it.

    waits    each wait for the device: the operation, and where in the repository it was called
    pinned   bytes of the host's memory that are registered, by address
    pending  works of collectives by storage: what touches it is computed after them
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []
        self.pending: dict[int, list[Any]] = {}
        self.pinned: dict[int, int] = {}
        self._marks: dict[int, StorageWeakRef] = {}
        self._is_paused = False
        self._births = False

    def __contains__(self, tensor: torch.Tensor) -> bool:
        return _key(tensor) in self._marks

    def put(self, made: Any) -> Any:
        """Mark all tensors of a result as lying on the device."""
        for tensor in _tensors(made):
            # A weak reference keeps the storage's address from being given to another one.
            self._marks.setdefault(_key(tensor), StorageWeakRef(tensor.untyped_storage()))
        return made

    def wait(self, what: object) -> None:
        """Note that the host waits for the device."""
        frames = [frame for frame in traceback.extract_stack() if frame.filename.startswith(_HOME)]
        own = [frame for frame in frames if "/tests/toolkit/gpu/" not in frame.filename]
        where = f"{own[-1].filename[len(_HOME) + 1 :]}:{own[-1].lineno}" if own else "?"
        self.waits.append(f"{what} in {where}")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Compute without looking at where the operands lie."""
        before, self._is_paused = self._is_paused, True
        try:
            yield
        finally:
            self._is_paused = before

    def copied(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy, which lies on the host; what is pending for the tensor comes first."""
        self.settle([tensor])
        with self.paused():
            return tensor.clone()

    def settle(self, tensors: list[torch.Tensor]) -> None:
        """Let the collectives end that these tensors have a part in: the order of the device's stream."""
        for tensor in tensors if self.pending else ():
            for work in self.pending.pop(_key(tensor), ()):
                work.wait()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operands = list(_tensors((args, kwargs)))
        self.settle(operands)
        if self._is_paused:
            return func(*args, **kwargs)
        if func.overloadpacket is _aten.copy_:
            return self._copy(func, *args, **kwargs)
        on_device = [tensor for tensor in operands if tensor in self]
        if on_device:
            self._check(func, operands, args, kwargs)
        made = func(*args, **kwargs)
        if on_device or (self._births and not operands and _is_floating(made)):
            self.put(made)
        return made

    def _copy(self, func: Any, target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> Any:
        if (target in self) != (source in self) and not non_blocking:
            self.wait("copy")
        return func(target, source, non_blocking)

    def _check(self, func: Any, operands: list[torch.Tensor], args: Any, kwargs: Any) -> None:
        packet = func.overloadpacket
        indices = [each for each in args[1] if each is not None] if packet in _INDEXING else []
        others = [each for each in operands if each not in self and each.dim() and not _among(each, indices)]
        if others:
            found = f"found {len(others)} of {len(operands)} on the CPU"
            raise RuntimeError(f"{func}: expected all tensors on one device, {found}")
        if packet in _WAITING or self._waits(packet, args, kwargs, indices):
            self.wait(packet)
        if torch.are_deterministic_algorithms_enabled() and _is_random(packet, args, kwargs):
            raise RuntimeError(f"{packet} does not have a deterministic implementation")

    def _waits(self, packet: Any, args: Any, kwargs: Any, indices: list[torch.Tensor]) -> bool:
        if packet is _aten.repeat_interleave:
            return kwargs.get("output_size") is None
        # A mask is turned into places; but setting one value where it holds is a fill.
        by_mask = any(each.dtype in (torch.bool, torch.uint8) for each in indices)
        is_fill = packet is not _aten.index and len(indices) == 1 and args[2].dim() == 0
        return (by_mask and not is_fill) or any(each not in self for each in indices)


_INDEXING = {_aten.index, _aten.index_put, _aten.index_put_, _aten._index_put_impl_}


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    return (each for each in tree_leaves(values) if isinstance(each, torch.Tensor))


def _key(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _among(tensor: torch.Tensor, others: list[torch.Tensor]) -> bool:
    return any(tensor is each for each in others)


def _is_floating(made: Any) -> bool:
    return isinstance(made, torch.Tensor) and made.is_floating_point()


def _is_random(packet: Any, args: Any, kwargs: Any) -> bool:
    if packet is _aten.cumsum:
        return bool(args[0].is_floating_point())
    if packet is _aten.bincount:
        return (args[1] if len(args) > 1 else kwargs.get("weights")) is not None
    if packet is _aten.scatter_reduce:
        return "prod" in args
    if packet is _aten.nll_loss2d_forward:
        # The documentation names every use; the kernel refuses only those that add up.
        return bool(args[3] != 0)
    return packet in _AT_RANDOM


@contextmanager
def pretended_device() -> Iterator[Device]:
    """Let this process have one CUDA device, which is pretended."""
    device = Device()
    # torch keeps its factories from the first use of a device's context on: patched ones would stay for good.
    _device_constructors()
    with ExitStack() as stack:
        for name, value in _methods(device).items():
            stack.enter_context(patch.object(torch.Tensor, name, value))
        for name in _FACTORIES:
            made = _factory(device, getattr(torch, name), waits=name in _FROM_HOST)
            stack.enter_context(patch.object(torch, name, made))
        for name, value in _cuda(device).items():
            stack.enter_context(patch.object(torch.cuda, name, value))
        for name in ("__init__", "_pre_forward"):
            stack.enter_context(patch.object(DistributedDataParallel, name, _buckets(device, name)))
        stack.enter_context(patch.object(functional, "scaled_dot_product_attention", _attention))
        stack.enter_context(device)
        # Dynamo keeps rules for the functions of torch of its first use, perhaps the patched ones.
        stack.callback(_forget_rules)
        yield device


def _forget_rules() -> None:
    if (rules := sys.modules.get("torch._dynamo.trace_rules")) is not None:
        rules.clear_lru_cache()


_own_attention = functional.scaled_dot_product_attention


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **others: Any,
) -> torch.Tensor:
    """Attention whose causal mask lies on the device of the query: torch makes it in C++."""
    if is_causal:
        shape = query.shape[-2], key.shape[-2]
        attn_mask = torch.ones(shape, dtype=torch.bool, device=query.device).tril()
    return _own_attention(query, key, value, attn_mask, dropout_p, **others)


def _methods(device: Device) -> dict[str, Any]:
    base: Any = torch._C.TensorBase

    def to(tensor: torch.Tensor, *args: Any, copy: bool = False, **kwargs: Any) -> torch.Tensor:
        if args and isinstance(args[0], torch.Tensor):
            args = (args[0].device, args[0].dtype, *args[1:])
        target, dtype, non_blocking, memory_format = torch._C._nn._parse_to(*args, **kwargs)
        is_there, goes_there = tensor in device, (target or tensor.device).type == "cuda"
        if is_there != goes_there:
            if not non_blocking:
                device.wait("copy")
            tensor = device.copied(tensor)
            if goes_there:
                device.put(tensor)
        form = {} if memory_format is None else {"memory_format": memory_format}
        own = base.device.__get__(tensor) if goes_there or target is None else target
        moved: torch.Tensor = base.to(tensor, own, dtype or tensor.dtype, copy=copy, **form)
        return moved

    def tolist(tensor: torch.Tensor) -> Any:
        if tensor in device:
            device.wait("tolist")
            tensor = device.copied(tensor)
        return base.tolist(tensor)

    def numpy(tensor: torch.Tensor, **kwargs: Any) -> Any:
        if tensor in device:
            raise TypeError("can't convert cuda:0 device type tensor to numpy: use Tensor.cpu() first")
        return base.numpy(tensor, **kwargs)

    def new_tensor(tensor: torch.Tensor, data: Any, **kwargs: Any) -> torch.Tensor:
        made: torch.Tensor = torch.tensor(data, **{"dtype": tensor.dtype, "device": tensor.device} | kwargs)
        return made

    def place(tensor: torch.Tensor) -> torch.device:
        found: torch.device = CUDA if tensor in device else base.device.__get__(tensor)
        return found

    return {
        "to": to,
        "cpu": lambda tensor, **_: tensor.to("cpu"),
        "tolist": tolist,
        "numpy": numpy,
        "new_tensor": new_tensor,
        "pin_memory": lambda tensor: tensor,
        "device": property(place),
        "is_cuda": property(lambda tensor: tensor in device),
        "is_cpu": property(lambda tensor: tensor not in device and base.is_cpu.__get__(tensor)),
    }


def _factory(device: Device, make: Callable[..., Any], *, waits: bool) -> Callable[..., Any]:
    def made(*args: Any, pin_memory: bool = False, **kwargs: Any) -> Any:
        wanted = kwargs.get("device")
        if wanted is None or torch.device(wanted).type != "cuda":
            return make(*args, **kwargs)
        del kwargs["device"]
        if waits:
            device.wait(make.__name__)
        with device.paused():
            found = make(*args, **kwargs)
            return device.put(found.clone() if make.__name__ == "as_tensor" else found)

    return made


def _cuda(device: Device) -> dict[str, Any]:
    stream = SimpleNamespace(synchronize=lambda: device.wait("synchronize"), wait_stream=lambda _: None)
    facts = {"name": "pretended", "total_memory": 1 << 36, "uuid": str(os.getpid()), "major": 8, "minor": 0}
    properties = SimpleNamespace(**facts)
    return {
        "cudart": lambda: _Runtime(device),
        "check_error": lambda _: None,
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "set_device": lambda _: None,
        "current_device": lambda: 0,
        "current_stream": lambda *_: stream,
        "synchronize": lambda *_: device.wait("synchronize"),
        "get_device_properties": lambda *_: properties,
        "is_bf16_supported": lambda *_, **__: True,
    }


class _Runtime:
    """CUDA's functions that pin memory of the host; those that were given wrong memory fail."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def cudaHostRegister(self, address: int, size: int, flags: int) -> int:
        assert address not in self._device.pinned
        self._device.pinned[address] = size
        return 0

    def cudaHostUnregister(self, address: int) -> int:
        del self._device.pinned[address]
        return 0


def _buckets(device: Device, name: str) -> Callable[..., Any]:
    """Let the memory that DDP makes in C++ lie on the device."""
    method = getattr(DistributedDataParallel, name)

    def noted(*args: Any, **kwargs: Any) -> Any:
        device._births = True
        try:
            return method(*args, **kwargs)
        finally:
            device._births = False

    return noted
