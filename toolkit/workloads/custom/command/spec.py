"""The task kind of a command, as the workload registers it."""

from __future__ import annotations

from toolkit.workload import TaskSpec
from toolkit.workloads.custom.command.code import kept_files
from toolkit.workloads.custom.command.config import RULES, Command, CommandExperiment

SPEC = TaskSpec(
    kind="command",
    config=Command,
    experiment=CommandExperiment,
    worker="toolkit.workloads.custom.command.worker:run_attempt",
    rules=RULES,
    kept_files=kept_files,
)
