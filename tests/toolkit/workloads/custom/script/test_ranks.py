"""The GPU on which a script's ranks talk to each other: that of the script's own collectives."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from toolkit.workloads.custom.script.ranks import _device


@pytest.mark.parametrize(
    "local_rank, current, visible, bound, index",
    [
        ("3", 0, 4, None, 3),
        ("3", 2, 4, None, 2),
        ("3", 0, 4, torch.device("cuda", 1), 1),
        ("3", 0, 1, None, 0),
        ("", 1, 4, None, 1),
    ],
    ids=["no current device", "a current device", "a device of the group", "one visible", "no launcher"],
)
def test_ranks_of_a_script_use_their_own_gpu(
    local_rank: str,
    current: int,
    visible: int,
    bound: torch.device | None,
    index: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOCAL_RANK", local_rank)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: visible)
    group = SimpleNamespace(bound_device_id=bound)
    distributed = SimpleNamespace(
        get_backend=lambda: "nccl", distributed_c10d=SimpleNamespace(_get_default_group=lambda: group)
    )
    assert _device(torch, distributed) == torch.device("cuda", index)
