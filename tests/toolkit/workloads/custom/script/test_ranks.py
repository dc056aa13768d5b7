"""The GPU on which a script's ranks talk to each other: that of the script's own collectives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from toolkit.workloads.custom.script.ranks import _device


def chosen(
    monkeypatch: pytest.MonkeyPatch,
    *,
    local_rank: str = "",
    current: int = 0,
    visible: int = 4,
    bound: Any = None,
) -> torch.device:
    """The device of a rank in a group of NCCL."""
    monkeypatch.setenv("LOCAL_RANK", local_rank)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: visible)
    group = SimpleNamespace(bound_device_id=bound)
    distributed = SimpleNamespace(
        get_backend=lambda: "nccl", distributed_c10d=SimpleNamespace(_get_default_group=lambda: group)
    )
    found: torch.device = _device(torch, distributed)
    return found


CASES: dict[str, tuple[dict[str, Any], int]] = {
    "no current device": ({"local_rank": "3"}, 3),
    "a current device": ({"local_rank": "3", "current": 2}, 2),
    "a device of the group": ({"local_rank": "3", "bound": torch.device("cuda", 1)}, 1),
    "one visible": ({"local_rank": "3", "visible": 1}, 0),
    "without a launcher": ({"current": 1}, 1),
}


@pytest.mark.parametrize("case, index", CASES.values(), ids=CASES)
def test_ranks_of_a_script_use_their_own_gpu(
    case: dict[str, Any], index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chosen(monkeypatch, **case) == torch.device("cuda", index)
