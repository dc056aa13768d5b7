"""The installed workloads: the task kinds, metrics and commands that they declare.

Workloads are looked up by entry points when one of these is first needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from toolkit.command import EvaluateOptions
from toolkit.system.distributions import Distribution, EntryPoint, entry_points
from toolkit.system.distributions import load_code as load_code
from toolkit.system.garbage_collection import without_collection
from toolkit.workload import LOSS, Metric, TaskSpec, Worker, Workload

#: Entry points whose value is a Workload.
GROUP = "slurm_toolkit.workloads"


def registered(group: str) -> list[EntryPoint]:
    """Return the entry points of a group in installed packages, in the order of their names."""
    return sorted((point for point in entry_points() if point.group == group), key=lambda point: point.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A workload, and the distribution that registered it."""

    name: str
    workload: Workload
    distribution: Distribution


def _installed() -> Iterator[Installed]:
    """All installed workloads that can be loaded, in the order of their names."""
    return (found for found in map(_load, registered(GROUP)) if isinstance(found, Installed))


def unloaded() -> Mapping[str, str]:
    """Why installed workloads cannot be loaded, by their names: a broken one does not affect the others."""
    found = {point.name: _load(point) for point in registered(GROUP)}
    return {name: why for name, why in found.items() if isinstance(why, str)}


@cache
def _load(point: EntryPoint) -> Installed | str:
    """The workload of an entry point, or why it cannot be loaded."""
    try:
        workload = point.load()
    # A module may call sys.exit when it is imported.
    except (Exception, SystemExit) as error:
        return not_imported(point.code, error)
    if not isinstance(workload, Workload):
        return f"{point.code} is a {type(workload).__name__}, expected a Workload"
    return Installed(name=point.name, workload=workload, distribution=point.distribution)


@cache
def installed(kind: str) -> Installed:
    """The first workload with this task kind. Raises LookupError if none has it.

    A workload with the name of the kind is tried first, because loading all of them takes long.
    """
    for point in sorted(registered(GROUP), key=lambda point: point.name != kind):
        found = _load(point)
        if isinstance(found, Installed) and any(task.kind == kind for task in found.workload.tasks):
            return found
    raise KeyError(kind)


@cache
def commands() -> Mapping[str, Mapping[str, str]]:
    """The commands of each workload that has some, as `Workload.commands`, by the workload's name."""
    return {each.name: each.workload.commands for each in _installed() if each.workload.commands}


def evaluate_options() -> tuple[EvaluateOptions, ...]:
    """Return the options that workloads add to `stk evaluate`; a failed import becomes a description."""
    return tuple(_evaluate_options(each.workload.evaluate) for each in _installed() if each.workload.evaluate)


def _evaluate_options(code: str) -> EvaluateOptions:
    try:
        found: EvaluateOptions = load_code(code)
    except (Exception, SystemExit) as error:
        return EvaluateOptions(add_arguments=lambda parser: None, description=not_imported(code, error))
    return found


def first_code(field: Literal["of_words", "of_function", "example"]) -> str:
    """The code that the first workload with this field of `Workload` names; empty without one."""
    codes = (str(getattr(each.workload, field)) for each in _installed())
    return next(filter(None, codes), "")


def extra_with(package: str) -> str:
    """The requirement with which pip installs a package, such as "slurm-toolkit[optuna]"; empty if unknown.

    It is an extra of a distribution that registers workloads.
    """
    wanted = re.compile(rf'{re.escape(package)}\b.*; extra == "(\w+)"')
    for each in dict.fromkeys(point.distribution for point in registered(GROUP)):
        for requirement in each.fields("Requires-Dist"):
            if found := wanted.match(requirement):
                return f"{each.field('Name')}[{found[1]}]"
    return ""


def not_imported(code: str, error: BaseException) -> str:
    """Say that code of a workload cannot be imported, why, and what to install if a package is missing."""
    package = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    extra = extra_with(package) if package else ""
    cure = f". Install it: pip install '{extra}'" if extra else ""
    return f"{code} cannot be imported ({type(error).__name__}: {error}){cure}"


class _TaskKinds(Mapping[str, TaskSpec]):
    """Loads workloads until one has a kind; all of them if the kinds are listed."""

    def __getitem__(self, kind: str) -> TaskSpec:
        return next(task for task in installed(kind).workload.tasks if task.kind == kind)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(task.kind for each in _installed() for task in each.workload.tasks))

    def __len__(self) -> int:
        return sum(1 for _ in self)


_KINDS = _TaskKinds()


def task_kinds() -> Mapping[str, TaskSpec]:
    """The task kinds of all installed workloads, by name."""
    return _KINDS


def sections_of_kinds() -> Iterator[tuple[str, type]]:
    """Yield each section that depends on the kind of a task or model, by name, of every kind."""
    for task in task_kinds().values():
        yield from (("task", task.config), ("data", task.data))
        yield from (("model", model) for model, _ in task.models.values())


def task_section(text: str) -> Mapping[str, Any] | None:
    """Return the task section for a text such as `digits.py`; None if no workload accepts the text."""
    found = (task.from_text(text) for each in _installed() for task in each.workload.tasks)
    return next((section for section in found if section is not None), None)


def kept_files(experiment: Any) -> Iterable[tuple[Path, str]]:
    """The files that a run keeps with its code for a checked experiment, as `TaskSpec.kept_files`."""
    return task_kinds()[experiment.task.kind].kept_files(experiment)


def worker_of(kind: str) -> Worker:
    """Return the worker on each rank of a run of a task kind. Importing it may take seconds, and fail."""
    code = task_kinds()[kind].worker
    # Nearly all objects of torch are kept: garbage collections meanwhile take an eighth of the time.
    with without_collection():
        worker: Worker = load_code(code)
    return worker


def metrics_of(task: Any, data: Any) -> tuple[Metric, ...]:
    """All metrics of an evaluation with these checked sections."""
    spec = task_kinds()[task.kind]
    return (*spec.metrics_of(data), *spec.task_metrics(task))


def declared_metrics(task: Mapping[str, Any]) -> dict[str, Metric]:
    """The metrics that a task declares, by name, its main one first; only the loss for an unknown kind.

    task   the task section of a run's config
    """
    spec = task_kinds().get(str(task.get("kind", "")))
    if spec is None:
        return {LOSS.name: LOSS}
    try:
        own = tuple(spec.task_metrics(SimpleNamespace(**task)))
    except Exception:
        # The section is damaged, which must not hide results.
        own = ()
    return {each.name: each for each in (*spec.metrics, *own, *spec.more_metrics)}


def metric_of(name: str, task: Mapping[str, Any]) -> Metric | None:
    """The metric of this name that a task declares; name/part has the metric of `name`.

    task   as in `declared_metrics`
    None if it is not declared.
    """
    declared = declared_metrics(task)
    return declared.get(name) or declared.get(name.partition("/")[0])


def brief_metrics(kind: str) -> tuple[str, ...]:
    """The metrics of a task kind that views with little room show; none for an unknown kind."""
    task = task_kinds().get(kind)
    return () if task is None else task.brief
