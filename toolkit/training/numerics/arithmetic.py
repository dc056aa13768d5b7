"""The arithmetic of a process: floating-point types, number of threads, deterministic kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from toolkit.config.schema import Experiment, Train
from toolkit.distributed.process_group import Group

#: The first scale of torch.amp.GradScaler, as a power of two.
_SCALE_OF_A_MEAN = 16
_HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def autocast_dtype(precision: str, device: torch.device) -> torch.dtype | None:
    """The type of autocast for a value of `train.precision` on a device; None for no autocast.

    `auto` is bf16 on a GPU that supports it in hardware (compute capability 8.0 and above), else fp32.
    """
    if precision == "auto":
        has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        precision = "bf16" if has_bf16 else "fp32"
    return _HALVES.get(precision)


def agreed_precision(precision: str, group: Group) -> str:
    """The `train.precision` of all ranks: `auto` is bf16 if all devices have it, else fp32. Collective."""
    if precision != "auto":
        return precision
    return "fp32" if group.any(autocast_dtype("auto", group.device) is None) else "bf16"


def first_scale(train: Train) -> float:
    """The first loss scale of fp16: torch's default, divided by the size of a step.

    torch's default suits a mean loss, but ours is a sum. With the default, the gradients overflow, and the
    first steps change no weights.
    """
    size = train.batch_size or train.batch_max_length or 1
    return 2.0 ** (_SCALE_OF_A_MEAN - size.bit_length() + 1)


def set_arithmetic(experiment: Experiment) -> None:
    """Make results reproducible: fix the thread count and, on CUDA, kernels and precision."""
    train = experiment.train
    _set(train)
    if train.deterministic and train.device != "cpu" and torch.cuda.is_available():
        # Before CUDA starts, because cuBLAS reads it once.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        # Not warn_only: attention kernels add in a fixed order only if nondeterminism is an error.
        torch.use_deterministic_algorithms(True)
        # It would fill all new memory, but no kernel here reads memory before it is written.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        torch.backends.cudnn.benchmark = False


@contextmanager
def guest_arithmetic(experiment: Experiment) -> Iterator[None]:
    """Compute like the experiment in a process that has other settings, which come back after the block.

    Deterministic kernels are not asked for: the process may have used cuBLAS already, which reads its own
    setting once, and would then refuse to compute.
    """
    threads, attention = torch.get_num_threads(), torch.backends.cuda.cudnn_sdp_enabled()
    precisions, is_medium = _precisions(), _has_medium_precision()
    _set(experiment.train)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.backends.cuda.enable_cudnn_sdp(attention)
        for owner, name, value in precisions:
            setattr(owner, name, value)
        if is_medium:
            # allow_tf32 cannot say it, and torch refuses to read settings that differ.
            torch.set_float32_matmul_precision("medium")


def _has_medium_precision() -> bool:
    """Whether torch.set_float32_matmul_precision("medium") was called; False if torch refuses to read it."""
    try:
        return torch.get_float32_matmul_precision() == "medium"
    except RuntimeError:
        return False


def _precisions() -> list[tuple[Any, str, Any]]:
    """The settings that decide on TF32: object, name, value."""
    # mypy does not know all of torch's backends.
    cudnn: Any = torch.backends.cudnn
    products = torch.backends.cuda.matmul
    try:
        return [(each, "allow_tf32", each.allow_tf32) for each in (cudnn, products)]
    except RuntimeError:
        # Since version 2.9 torch refuses to read these names after the newer ones were set.
        return [(each, "fp32_precision", each.fp32_precision) for each in (products, cudnn.conv, cudnn.rnn)]


def _set(train: Train) -> None:
    torch.set_num_threads(train.threads)
    # torch's default is TF32 for convolutions, but not for matrix products.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = train.precision == "tf32"
    # cuDNN's attention makes a plan for each new batch length: up to 1.4 s on an H200, as long as 40 steps.
    torch.backends.cuda.enable_cudnn_sdp(False)
