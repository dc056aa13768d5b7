"""Refuse secrets in `resources`: they are recorded, and Slurm shows options to every user."""

from __future__ import annotations

import re
from collections.abc import Iterator

from slurm.config.resource_rules import told_to_slurm
from toolkit.config.schema import Experiment
from toolkit.config.secrets import is_secret, referred
from toolkit.config.serialize import to_plain
from toolkit.workload import Violation, rule

_RECORDED = "a secret must not be in an experiment, which is recorded"
#: A variable that a shell line sets to a literal value, not to another variable or a command's output.
_SET = re.compile(r"""\b([A-Za-z_][A-Za-z0-9_]*)=(?=["']?[^\s"'$`;&|])""")


@rule("resources.environment")
def _environment(experiment: Experiment) -> Iterator[Violation]:
    for name, value in to_plain(experiment.resources)["environment"].items():
        if is_secret(name) and value and not referred(value):
            yield Violation(key=("resources", "environment", name), problem=_RECORDED, hint=_export(name))


@rule("resources.setup")
def _setup(experiment: Experiment) -> Iterator[Violation]:
    for number, line in enumerate(to_plain(experiment.resources)["setup"]):
        key = ("resources", "setup", str(number))
        if named := referred(line):
            problem = f"found the variable {named[0]}, which has the name of a secret: this line is recorded"
            yield Violation(key=key, problem=problem, hint=f"write ${named[0]}: the job's shell has it")
        elif names := [name for name in _SET.findall(line) if is_secret(name)]:
            problem = f"found a value for {names[0]}: {_RECORDED}"
            yield Violation(key=key, problem=problem, hint=_export(names[0]))


@rule("resources")
def _slurm_options(experiment: Experiment) -> Iterator[Violation]:
    for key, text in told_to_slurm(experiment.resources):
        if named := referred(text):
            problem = f"found the variable {named[0]}, a secret judging by its name: Slurm shows this to all"
            yield Violation(key=key, problem=problem, hint="if it is no secret, rename the variable")


def _export(name: str) -> str:
    return f"export {name} in the shell that submits: the job gets it from there"


RULES = (_environment, _setup, _slurm_options)
