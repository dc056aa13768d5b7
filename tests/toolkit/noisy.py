"""An experiment whose data section has noise, whatever task will have one."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from toolkit.config.kinds import TASKS
from toolkit.config.kinds.spelling import NoNoise, noise_kinds
from toolkit.config.kinds.text import TextTable
from toolkit.config.options import option


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Noisy(TextTable):
    noise: Any = option(factory=NoNoise, kinds=noise_kinds)  # noqa: RUF009 - makes a field


@pytest.fixture
def data_with_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make noise a key of the data of text classification."""
    row = dataclasses.replace(TASKS["text_classification"], data=_Noisy)
    monkeypatch.setitem(TASKS, "text_classification", row)


def tree(noise: Any = None) -> dict[str, Any]:
    data = {"path": "a.tsv"} | ({} if noise is None else {"noise": noise})
    return {"name": "n", "task": {"kind": "text_classification"}, "model": {"kind": "docnn"}, "data": data}
