"""Rules for the keys of resources, also together with keys of training; no secrets in `resources`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

from slurm.config.sbatch_options import refused_options
from slurm.config.world_size import node_range, smallest_world, world_size
from toolkit.config.origins import Key
from toolkit.config.schema import Experiment
from toolkit.config.secrets import RECORDED, is_secret, referred, texts
from toolkit.config.serialize import to_plain
from toolkit.launch.machines.host_names import named_twice
from toolkit.workload import Violation, rule

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOST = re.compile(r"[A-Za-z0-9_:](?:[A-Za-z0-9._:-]*[A-Za-z0-9_.])?")
_SBATCH_OPTION = re.compile(r"[a-z][a-z0-9-]*")
#: The keys that set the number of processes, after a world size has been spread over hosts.
_PROCESSES = ("resources.hosts", "resources.groups", "resources.nodes", "resources.tasks_per_node")
#: A variable that a shell line sets to a literal value, not to another variable or a command's output.
_SET = re.compile(r"""\b([A-Za-z_][A-Za-z0-9_]*)=(?=["']?[^\s"'$`;&|])""")


@rule("resources.nodes")
def _nodes(experiment: Experiment) -> Iterator[Violation]:
    least, most = node_range(experiment.resources.nodes)
    if least > most:
        problem = f"found {experiment.resources.nodes!r}, expected the smaller number first"
        yield Violation(key=("resources", "nodes"), problem=problem, hint=f"{most}-{least}")


@rule("resources.groups", "resources.nodes", "resources.tasks_per_node")
def _groups(experiment: Experiment) -> Iterator[Violation]:
    resources = experiment.resources
    given = [name for name in ("nodes", "tasks_per_node") if getattr(resources, name) != 1]
    if resources.groups and given:
        problem = f"found groups together with {' and '.join(given)}"
        hint = "groups set the numbers of hosts and tasks: leave the other keys out"
        yield Violation(key=("resources", given[0]), problem=problem, hint=hint)


@rule("resources.world_size", *_PROCESSES)
def _world_size(experiment: Experiment) -> Iterator[Violation]:
    resources = experiment.resources
    typed, size = resources.world_size, world_size(resources)
    if typed is not None and typed != size:
        problem = f"found {typed}, but the other keys of resources make {size} processes"
        hint = "leave it out, or make it the number of hosts times the processes of each"
        yield Violation(key=("resources", "world_size"), problem=problem, hint=hint)


@rule(*_PROCESSES)
def _hosts(experiment: Experiment) -> Iterator[Violation]:
    resources = experiment.resources
    given = [name for name in ("nodes", "tasks_per_node") if getattr(resources, name) != 1]
    given += [name for name in ("groups", "nodelist") if getattr(resources, name)]
    if resources.hosts and given:
        problem = f"found hosts together with {' and '.join(given)}"
        hint = "hosts set the hosts and their processes: leave the other keys out"
        yield Violation(key=("resources", given[0]), problem=problem, hint=hint)


@rule("resources.hosts", "train.device")
def _host_names(experiment: Experiment) -> Iterator[Violation]:
    hosts = experiment.resources.hosts
    for name in hosts:
        if not _HOST.fullmatch(name):
            problem = f"found {name!r}, expected the name or the address of a host"
            yield Violation(key=("resources", "hosts", name), problem=problem)
    if twice := named_twice(hosts):
        problem = f"{twice[0]} and {twice[1]} are the same host"
        yield Violation(key=("resources", "hosts", twice[1]), problem=problem, hint="keep one of them")
    without = [name for name, gpus in hosts.items() if gpus == 0]
    if without and len(without) < len(hosts) and experiment.each_rank_needs_a_gpu:
        problem = "found 0 GPUs, but the other hosts have some: they cannot add up their gradients"
        hint = "leave it out, or set train.device to cpu"
        yield Violation(key=("resources", "hosts", without[0]), problem=problem, hint=hint)


@rule("resources.environment", *_PROCESSES)
def _world_size_variable(experiment: Experiment) -> Iterator[Violation]:
    typed = experiment.resources.environment.get("WORLD_SIZE")
    least, size = smallest_world(experiment.resources), world_size(experiment.resources)
    if typed is not None and typed not in (str(number) for number in range(least, size + 1)):
        problem = f"found {typed!r}, but the resources make a world of {size} processes"
        hint = "leave it out: every rank gets it automatically"
        yield Violation(key=("resources", "environment", "WORLD_SIZE"), problem=problem, hint=hint)


@rule(*_PROCESSES, "train.batch_size")
def _world(experiment: Experiment) -> Iterator[Violation]:
    size, samples = world_size(experiment.resources), experiment.train.batch_size
    if samples is not None and size > samples:
        problem = f"found {size} processes, but train.batch_size is {samples}: {size - samples} have no work"
        hint = f"use at most {samples} processes, or set train.batch_size to {size} or more"
        resources = experiment.resources
        key = "hosts" if resources.hosts else "groups" if resources.groups else "tasks_per_node"
        yield Violation(key=("resources", key), problem=problem, hint=hint)


@rule("train.parallel", *_PROCESSES)
def _parallel(experiment: Experiment) -> Iterator[Violation]:
    size, parallel = world_size(experiment.resources), experiment.train.parallel
    if parallel in ("dp", "none") and size > 1:
        problem = f"found {parallel}, which is for one process, but the resources make {size}"
        yield Violation(key=("train", "parallel"), problem=problem, hint="ddp, or resources of one process")


@rule("resources.environment")
def _variables(experiment: Experiment) -> Iterator[Violation]:
    for name in experiment.resources.environment:
        if not _VARIABLE.fullmatch(name):
            problem = f"found {name!r}, expected a variable's name: letters, digits and _, no digit first"
            yield Violation(key=("resources", "environment", name), problem=problem)


@rule("resources.sbatch")
def _options(experiment: Experiment) -> Iterator[Violation]:
    for name, value in experiment.resources.sbatch.items():
        key = ("resources", "sbatch", name)
        if not _SBATCH_OPTION.fullmatch(name):
            problem = f"found {name!r}, expected an option's long name without dashes before it"
            yield Violation(key=key, problem=problem, hint="as in: kill-on-invalid-dep: yes")
        elif not isinstance(value, str | int | float):
            yield Violation(key=key, problem="expected text, a number, or true for a flag")


@rule("resources.sbatch", holds_for_stored=False)
def _refused_options(experiment: Experiment) -> Iterator[Violation]:
    given = experiment.resources.sbatch
    yield from refused_options({name: given[name] for name in given if _SBATCH_OPTION.fullmatch(name)})


@rule()
def _one_line(experiment: Experiment) -> Iterator[Violation]:
    """Refuse line breaks: each text is one line of the batch script."""
    if is_dataclass(experiment.resources):
        for key, text in told_to_slurm(experiment.resources):
            if "\n" in text or "\r" in text:
                problem = f"found {text!r}, which has a line break and would break the batch script"
                yield Violation(key=key, problem=problem, hint="shell lines belong in resources.setup")


def told_to_slurm(resources: Any) -> Iterator[tuple[Key, str]]:
    """Yield the texts in resources that are passed to Slurm, each in one line of the batch script."""
    plain = to_plain(resources).items()
    visible = {name: value for name, value in plain if name not in ("environment", "setup")}
    return texts(visible, ("resources",))


@rule("resources.environment")
def _secret_variables(experiment: Experiment) -> Iterator[Violation]:
    for name, value in to_plain(experiment.resources)["environment"].items():
        if is_secret(name) and value and not referred(value):
            yield Violation(key=("resources", "environment", name), problem=RECORDED, hint=_export(name))


@rule("resources.setup")
def _secrets_of_setup(experiment: Experiment) -> Iterator[Violation]:
    for number, line in enumerate(to_plain(experiment.resources)["setup"]):
        key = ("resources", "setup", str(number))
        if named := referred(line):
            problem = f"found the variable {named[0]}, which has the name of a secret: this line is recorded"
            yield Violation(key=key, problem=problem, hint=f"write ${named[0]}: the job's shell has it")
        elif names := [name for name in _SET.findall(line) if is_secret(name)]:
            problem = f"found a value for {names[0]}: {RECORDED}"
            yield Violation(key=key, problem=problem, hint=_export(names[0]))


@rule("resources")
def _secrets_for_slurm(experiment: Experiment) -> Iterator[Violation]:
    for key, text in told_to_slurm(experiment.resources):
        if named := referred(text):
            problem = f"found the variable {named[0]}, a secret judging by its name: Slurm shows this to all"
            yield Violation(key=key, problem=problem, hint="if it is no secret, rename the variable")


def _export(name: str) -> str:
    return f"export {name} in the shell that submits: the job gets it from there"


RULES = (
    _nodes, _groups, _world_size, _hosts, _host_names, _world_size_variable, _world, _parallel, _variables,
    _options, _refused_options, _one_line,
)  # fmt: skip
SECRET_RULES = (_secret_variables, _secrets_of_setup, _secrets_for_slurm)
