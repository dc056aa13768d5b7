"""Runs of spelling have their own commands for what `stk predict` does with others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from toolkit.registry import task_kinds


@pytest.mark.parametrize(
    "kind, commands",
    [
        ("sed_words", "Use `stk detect abc [FILE]`"),
        ("sec_nmt", "Use `stk correct abc [FILE]`"),
        ("tokenization_repair_plus", "Use `stk detect abc [FILE]` or `stk correct abc [FILE]`"),
    ],
)
def test_the_commands_of_a_task_are_named(kind: str, commands: str) -> None:
    experiment = SimpleNamespace(task=SimpleNamespace(kind=kind))
    assert task_kinds()[kind].prediction_fault(experiment, Path("runs/abc")).endswith(commands)
