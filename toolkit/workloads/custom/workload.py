"""Users' own code, as a workload."""

from __future__ import annotations

from toolkit.workload import Workload
from toolkit.workloads.custom.command.spec import SPEC as COMMAND
from toolkit.workloads.custom.functions.spec import SPEC as FUNCTIONS

WORKLOAD = Workload(
    name="custom",
    packages=("toolkit.workloads.custom",),
    tasks=(FUNCTIONS, COMMAND),
    commands={"init": "toolkit.workloads.custom.commands.init:INIT"},
    of_words="toolkit.workloads.custom.command.from_words:experiment_of",
    of_function="toolkit.workloads.custom.calling.from_function:experiment_of",
)
