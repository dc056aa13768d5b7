"""Marks for the two tiers of tests: CONTRIBUTING.md says how to choose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def first_quick(cases: Iterable[Any], quick: int = 1) -> list[ParameterSet]:
    """Cases of a parametrized test of which the first are quick. A tuple stands for several values."""
    params = [_param(case) for case in cases]
    slow = [pytest.param(*each.values, id=each.id, marks=[*each.marks, pytest.mark.slow]) for each in params]
    return [*params[:quick], *slow[quick:]]


def _param(case: Any) -> ParameterSet:
    if isinstance(case, ParameterSet):
        return case
    return pytest.param(*case) if isinstance(case, tuple) else pytest.param(case)
