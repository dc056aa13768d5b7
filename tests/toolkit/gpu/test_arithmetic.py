"""Arithmetic settings of torch and CUDA before training starts."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch

from tests.toolkit.gpu.device import CUDA, pretended_device
from tests.toolkit.support.ranks import in_ranks, joined, run_ranks
from tests.toolkit.support.tiny import tiny
from toolkit.system.world import World
from toolkit.training.numerics.arithmetic import (
    agreed_precision,
    autocast_dtype,
    guest_arithmetic,
    set_arithmetic,
)


def arithmetic(world: World, folder: Path, *overrides: str) -> dict[str, Any]:
    with pretended_device():
        set_arithmetic(tiny(folder, *overrides))
    return {
        "demanded": torch.are_deterministic_algorithms_enabled(),
        "only warned of": torch.is_deterministic_algorithms_warn_only_enabled(),
        "filled": torch.utils.deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
        "workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
        "attention by cuDNN": torch.backends.cuda.cudnn_sdp_enabled(),
        "tf32": (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32),
    }


def test_deterministic_algorithms_are_enabled_on_a_gpu(tmp_path: Path) -> None:
    """Attention kernels are deterministic only if torch raises for other kernels (not warn_only)."""
    (found,) = in_ranks(1, arithmetic, tmp_path, "train.device=auto")
    assert (found["demanded"], found["workspace"]) == (True, ":4096:8")
    assert not any(found[name] for name in ("only warned of", "filled", "attention by cuDNN"))


@pytest.mark.parametrize("override", ["train.deterministic=false", "train.device=cpu"])
def test_deterministic_algorithms_may_be_off_and_attention_by_cudnn_always_is(
    override: str, tmp_path: Path
) -> None:
    """Attention by cuDNN plans anew for each length of a batch, longer than the steps take."""
    (found,) = in_ranks(1, arithmetic, tmp_path, "train.device=auto", override)
    assert (found["demanded"], found["workspace"], found["attention by cuDNN"]) == (False, None, False)


@pytest.mark.parametrize("precision, is_allowed", [("fp32", False), ("tf32", True), ("bf16", False)])
def test_tf32_is_used_for_matmuls_and_convolutions_only_if_requested(
    precision: str, is_allowed: bool, tmp_path: Path
) -> None:
    """By default torch uses TF32 for convolutions but not for matmuls."""
    (found,) = in_ranks(1, arithmetic, tmp_path, f"train.precision={precision}")
    assert found["tf32"] == (is_allowed, is_allowed)


def use_what_adds_in_any_order(world: World, folder: Path) -> None:
    with pretended_device():
        set_arithmetic(tiny(folder, "train.device=auto"))
        torch.cumsum(torch.ones(3, device=CUDA), 0)


def test_operation_without_a_deterministic_kernel_raises(tmp_path: Path) -> None:
    (ended,) = run_ranks(1, use_what_adds_in_any_order, tmp_path)
    assert "does not have a deterministic implementation" in ended.error


@pytest.mark.parametrize("has_bf16, dtype", [(True, torch.bfloat16), (False, None)])
def test_a_gpu_with_bf16_uses_bf16_autocast_by_default(
    monkeypatch: pytest.MonkeyPatch, has_bf16: bool, dtype: torch.dtype | None
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *, including_emulation: has_bf16)
    assert autocast_dtype("auto", CUDA) is dtype
    assert autocast_dtype("fp32", CUDA) is None


def test_a_cpu_uses_no_autocast_by_default() -> None:
    assert autocast_dtype("auto", torch.device("cpu")) is None


def precision_beside_an_older_gpu(world: World, folder: Path) -> list[str]:
    """As on two GPUs, of which only the first has bf16."""
    has_bf16 = patch.object(torch.cuda, "is_bf16_supported", lambda **_: world.rank == 0)
    with joined(world, folder) as group, has_bf16:
        return [agreed_precision(each, replace(group, device=CUDA)) for each in ("auto", "bf16")]


def test_all_ranks_compute_in_the_precision_that_each_of_their_gpus_has(tmp_path: Path) -> None:
    assert in_ranks(2, precision_beside_an_older_gpu, tmp_path) == [["fp32", "bf16"]] * 2


def settings() -> tuple[object, ...]:
    cuda = torch.backends.cuda
    return (
        torch.get_num_threads(),
        torch.backends.cudnn.allow_tf32,
        cuda.matmul.allow_tf32,
        cuda.cudnn_sdp_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
    )


def as_a_guest(world: World, folder: Path, precision: str) -> list[tuple[object, ...]]:
    torch.set_num_threads(2)
    torch.backends.cudnn.allow_tf32 = True
    torch.set_float32_matmul_precision(precision)
    torch.backends.cuda.enable_cudnn_sdp(True)
    found = [settings()]
    with pretended_device():
        with guest_arithmetic(tiny(folder, "train.device=auto", "train.threads=1")):
            found.append(settings())
        found.append(settings())
    assert torch.get_float32_matmul_precision() == precision
    return found


def with_newer_names(world: World, folder: Path) -> tuple[str, str]:
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    with pretended_device(), guest_arithmetic(tiny(folder, "train.device=auto")):
        within = torch.backends.cuda.matmul.fp32_precision
    return within, torch.backends.cuda.matmul.fp32_precision


@pytest.mark.skipif(
    not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="torch before 2.9 lacks the newer names"
)
def test_settings_under_torchs_newer_names_come_back(tmp_path: Path) -> None:
    """After they were set, torch refuses to read the older names."""
    assert in_ranks(1, with_newer_names, tmp_path) == [("ieee", "tf32")]


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_predictions_in_another_process_leave_its_arithmetic_as_it_was(
    precision: str, tmp_path: Path
) -> None:
    ((before, within, after),) = in_ranks(1, as_a_guest, tmp_path, precision)
    assert within == (1, False, False, False, False, None)
    assert before == after == (2, True, precision != "highest", True, False, None)
