"""A task of somebody else with a metric of the toy's name: less of it is better, and it is no share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from toolkit import registry
from toolkit.registry import task_kinds
from toolkit.workload import LOSS, Metric

KIND = "strange"
ACCURACY = Metric(name="accuracy", goal="min", title="Miss distance", unit="number")


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this test find the task."""
    spec = replace(task_kinds()["toy_points"], kind=KIND, metrics=(LOSS, ACCURACY))
    monkeypatch.setattr(registry, "_KINDS", {**task_kinds(), KIND: spec})
