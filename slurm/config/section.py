"""Slurm's part of an experiment. `pyproject.toml` registers it; toolkit/config/sections.py looks it up."""

from __future__ import annotations

from slurm.config import amount_rules, resource_rules
from slurm.config.resources import Resources
from slurm.config.world_size import PROCESS_KEYS, spread_world_size
from toolkit.config.sections import Section

RESOURCES = Section(
    name="resources",
    config=Resources,
    rules=(*resource_rules.RULES, *amount_rules.RULES, *resource_rules.SECRET_RULES),
    complete=spread_world_size,
    completed_from=PROCESS_KEYS,
    hints={
        "excluded_hosts": "resources.exclude avoids a host.",
        "hosts": "resources.hosts holds that map.",
        "memory": "resources.mem sets the memory of each host.",
        "ranks_per_host": "resources.tasks_per_node or --procs sets the processes of each host.",
    },
)
