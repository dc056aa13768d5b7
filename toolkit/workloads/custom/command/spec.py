"""The task kind of a command, as the workload registers it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolkit.workload import TaskSpec
from toolkit.workloads.custom.command.code import kept_files
from toolkit.workloads.custom.command.config import RULES, Command, CommandExperiment, missing_script


def _knows_no_model(experiment: Any, folder: Path) -> str:
    """Return the reason why a run of a command cannot predict."""
    return "a command trains no model that is known here. Let your own program predict"


SPEC = TaskSpec(
    kind="command",
    config=Command,
    experiment=CommandExperiment,
    worker="toolkit.workloads.custom.command.worker:run_attempt",
    rules=RULES,
    file_check=missing_script,
    prediction_fault=_knows_no_model,
    kept_files=kept_files,
)
