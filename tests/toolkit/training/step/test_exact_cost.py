"""Rank 0 measures once in an attempt which share of a step exactness takes."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from toolkit.data.order.sample_order import EpochPlan
from toolkit.system.world import World
from toolkit.training.step import exact_cost
from toolkit.training.step.exact_cost import ExactCost

PLAN = EpochPlan(order=np.arange(12), offsets=np.array([0, 3, 6, 9, 12]), micro_batches=4)


def measured(
    monkeypatch: pytest.MonkeyPatch,
    passes: Sequence[Sequence[int]],
    rank: int = 0,
    longest_s: float = 60.0,
    *,
    of_size: int = 2,
    accumulation: int = 1,
    largest: int = 100,
) -> tuple[list[dict[str, float]], list[list[int]]]:
    """What is noted in thirty steps, and the samples that were computed for it.

    largest   samples of a pass that still fit into memory
    """
    monkeypatch.setattr(exact_cost, "_LONGEST_STEP_S", longest_s)
    noted: list[dict[str, float]] = []
    computed: list[list[int]] = []

    def compute(context: object, samples: np.ndarray) -> None:
        if len(samples) > largest:
            raise torch.OutOfMemoryError
        computed.append(samples.tolist())

    training: Any = SimpleNamespace(
        passes=passes,
        experiment=SimpleNamespace(
            train=SimpleNamespace(logical_ranks=4 // accumulation, accumulation=accumulation)
        ),
        attempt=SimpleNamespace(noted=lambda **facts: noted.append(facts)),
        group=SimpleNamespace(world=World(rank=rank, size=of_size, local_rank=rank, local_size=of_size)),
        without_quarantined=lambda samples: samples,
    )
    monkeypatch.setattr(exact_cost, "dry_run", compute)
    cost = ExactCost(training)
    for _ in range(30):
        cost.measure_if_due(PLAN, 0)
    return noted, computed


def test_exact_cost_compares_the_passes_of_a_step_with_those_of_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    noted, computed = measured(monkeypatch, [(0,), (1,)])
    (facts,) = noted
    assert facts["exact_s"] >= 0.0
    assert 0.0 <= facts["exact_share"] <= 1.0
    assert computed[:2] == [[0, 1, 2], [3, 4, 5]]
    assert computed[-1] == [0, 1, 2, 3, 4, 5]


def test_exact_cost_computes_no_larger_passes_than_fast_would(monkeypatch: pytest.MonkeyPatch) -> None:
    _, computed = measured(monkeypatch, [(0,), (1,)], accumulation=2)
    assert {len(samples) for samples in computed} == {3}


def test_exact_cost_is_left_out_if_the_passes_of_fast_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    noted, computed = measured(monkeypatch, [(0,), (1,)], largest=3)
    assert noted == []
    assert computed


@pytest.mark.parametrize(
    "case",
    [
        {"passes": ((0, 1),)},
        {"passes": ((0,),), "of_size": 4},
        {"passes": [(2,), (3,)], "rank": 1},
        {"passes": [(0,), (1,)], "longest_s": 0.0},
    ],
    ids=["fast", "one part", "another rank", "a long step"],
)
def test_exact_cost_is_not_measured_for_equal_passes_other_ranks_or_long_steps(
    monkeypatch: pytest.MonkeyPatch, case: dict[str, Any]
) -> None:
    assert measured(monkeypatch, **case) == ([], [])
