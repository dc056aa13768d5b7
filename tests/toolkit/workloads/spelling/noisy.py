"""An experiment whose data section has noise, with a task that is not one of spelling."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from toolkit import registry
from toolkit.config.fields import option
from toolkit.registry import task_kinds
from toolkit.workloads.spelling.config import rules
from toolkit.workloads.spelling.config.noise import NoNoise, noise_kinds
from toolkit.workloads.text_classification.config import TextTable


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Noisy(TextTable):
    noise: Any = option(factory=NoNoise, kinds=noise_kinds)  # noqa: RUF009 - makes a field


@pytest.fixture
def data_with_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make noise a key of the data of text classification."""
    row = dataclasses.replace(task_kinds()["text_classification"], data=_Noisy, rules=rules.RULES)
    monkeypatch.setattr(registry, "_KINDS", {**task_kinds(), "text_classification": row})


def tree(noise: Any = None) -> dict[str, Any]:
    data = {"path": "a.tsv"} | ({} if noise is None else {"noise": noise})
    return {"name": "n", "task": {"kind": "text_classification"}, "model": {"kind": "docnn"}, "data": data}
