"""CUDA's autocast on the CPU: operations are cast as CUDA's lists say, which are not the CPU's."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

#: CUDA's lists, in the headers that come with torch.
_LISTS = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
_LOWER, _FP32, _FP32_SUM, _WIDEST = (
    "LOWER_PRECISION_FP", "FP32", "FP32_SET_OPT_DTYPE", "PROMOTE",
)  # fmt: skip


def listed(name: str) -> set[str]:
    """The operations of one of CUDA's lists."""
    (body,) = re.findall(rf"define AT_FORALL_{name}\(_\)((?:.*\\\n)*.*)", _LISTS.read_text(encoding="utf-8"))
    pairs = re.findall(r"_\((\w+)(?:, (\w+))?\)", body)
    return {f"{packet}.{overload}" if overload else packet for packet, overload in pairs}


@contextmanager
def cuda_autocast() -> Iterator[None]:
    """Let torch.autocast of the CPU cast as that of CUDA does; for a process that ends with this."""
    kinds = {_LOWER: _lower, _FP32: _single, _FP32_SUM: _single, _WIDEST: _widest}
    wanted = {name: cast for each, cast in kinds.items() for name in listed(each)}
    # What the CPU's lists have and CUDA's have not is left as it is.
    own = {each.removeprefix("aten::") for each in _registered()}
    library = torch.library.Library("aten", "IMPL", "AutocastCPU")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*[Oo]verrid.*")
        for name in sorted(own | wanted.keys()):
            if _operation(name) is not None:
                library.impl(name, _cast(name, wanted.get(name, _as_is)), allow_override=True)
    yield


def _registered() -> list[str]:
    found: list[str] = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCPU")
    return found


def _operation(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)


def _cast(name: str, cast: Callable[[Any], Callable[[torch.Tensor], torch.Tensor]]) -> Callable[..., Any]:
    operation = _operation(name)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        change = cast(tree_leaves((args, kwargs)))
        args, kwargs = tree_map(lambda each: change(each) if _is_cast(each) else each, (args, kwargs))
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)):
            return operation(*args, **kwargs)

    return kernel


def _is_cast(value: Any) -> bool:
    """Floating-point tensors but those of double precision."""
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != torch.float64


def _lower(_: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda tensor: tensor.to(torch.get_autocast_dtype("cpu"))


def _single(_: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda tensor: tensor.float()


def _widest(operands: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    is_single = any(_is_cast(each) and each.dtype == torch.float32 for each in operands)
    return _single(()) if is_single else _lower(())


def _as_is(_: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda tensor: tensor
