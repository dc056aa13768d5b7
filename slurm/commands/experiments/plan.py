"""stk plan: values with their sources, defaults in few lines, the steps, the batch script."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from slurm.commands.common import experiment_file, warn
from slurm.config.amount_rules import amounts
from slurm.config.world_size import node_range
from slurm.status.submissions import submissions
from slurm.submission.batch.batch_script import JobPlan
from slurm.submission.checks.early_checks import check_before_queue, check_code
from toolkit.config import load_with_origins, to_plain
from toolkit.config.composition.yaml_files import dump
from toolkit.config.origins import Key, Origins
from toolkit.precheck.changes import change_warnings
from toolkit.precheck.last_run import compared_with, newest_run
from toolkit.precheck.steps_per_epoch import steps_per_epoch
from toolkit.run.create_run import run_of
from toolkit.system.output.json_text import json_text
from toolkit.workload import NoData

_WIDTH = 100
#: Column where the place of a key begins, unless its value is longer.
_PLACE = 50


def run(arguments: Namespace) -> int:
    experiment, origins = load_with_origins(experiment_file(arguments.config), arguments.overrides)
    target = run_of(experiment)
    job = JobPlan(experiment=experiment, run=target, number=len(submissions(target)))
    facts = job.to_json()
    if arguments.test_only:
        from slurm.client import programs
        from slurm.submission.checks.preflight import preflight
        from slurm.submission.submit_job import environment

        preflight(job.resources)
        facts["test_only"] = answer = programs.test_only(str(job), environment(target, os.environ))
        print(answer, file=sys.stderr)
    print(json_text(facts) if arguments.json else plan_text(job, origins))
    warn(change_warnings(target, experiment, new_code=False))
    # Last, so that the plan is shown even if the data are missing.
    warn(check_before_queue(experiment, origins, "slurm"))
    check_code(experiment)
    return 0


def plan_text(job: JobPlan, origins: Origins) -> str:
    """Return the whole text. Only set keys are YAML, the rest are comments, so it is an experiment file.

    origins  the places where the experiment's keys were written
    """
    plain = to_plain(job.experiment)
    parts = [
        f"# {job.run.path}\n{''.join(f'# {line}{chr(10)}' for line in _sizes(job, plain))}",
        "# what is set, and where\n" + "\n".join(_set(plain, (), origins)) + "\n",
        "# defaults\n" + "\n".join(_defaults(plain, origins)) + "\n",
        f"# batch script\n\n{job}",
    ]
    return "\n".join(parts)


def _sizes(job: JobPlan, plain: Mapping[str, Any]) -> Iterator[str]:
    least, most = node_range(job.resources.nodes)
    if least != most:
        processes = least * job.resources.tasks_per_node
        yield f"{processes} to {job.world_size} processes, depending on the number of free hosts"
    yield from amounts(job.resources)
    if "train" not in plain:
        return
    of_epoch, epochs = steps_per_epoch(job.experiment), job.experiment.train.epochs or 0
    steps = job.experiment.train.steps or (of_epoch and of_epoch * epochs)
    if steps is None:
        is_late = isinstance(job.experiment.data, NoData)
        when = "when the run starts" if is_late else "when the data are prepared (`stk prepare`)"
        yield f"{epochs} epoch{'s'[: epochs != 1]}; the steps are known {when}"
    elif not of_epoch:
        yield f"{steps:,} steps"
    else:
        share = round(steps / of_epoch, 2)
        yield f"{steps:,} step{'s'[: steps != 1]}: {share:g} epoch{'s'[: share != 1]} of {of_epoch:,}"
    if (last := newest_run(job.experiment.name)) is not None:
        yield from compared_with(last, job.experiment, steps)


def _set(plain: Mapping[str, Any], around: Key, origins: Origins) -> Iterator[str]:
    """Yield the lines of the keys that were written, indented in sections."""
    for name, value in plain.items():
        key = (*around, name)
        indent = "  " * len(around)
        if isinstance(value, dict) and value:
            inner = list(_set(value, key, origins))
            yield from [f"{indent}{_name(name)}:", *inner] if inner else []
        elif origins.is_written(key):
            place = " ".join(str(origins.of(key)).split())
            yield f"{indent + _entry(name, value):<{_PLACE}}  # {place}"


def _entry(name: str, value: Any) -> str:
    """Return a key and its value as one line of YAML, which includes JSON."""
    line = "" if isinstance(value, list | dict) else dump({name: value}).rstrip("\n")
    return line if line and "\n" not in line else f"{_name(name)}: {json.dumps(value, ensure_ascii=False)}"


def _name(name: str) -> str:
    return dump({name: 0}).rpartition(":")[0]


def _defaults(plain: Mapping[str, Any], origins: Origins) -> Iterator[str]:
    """Yield a paragraph for each section: its keys that were not written, keys without a value last."""
    for section, value in plain.items():
        leaves = dict(_leaves({section: value}, (), origins))
        if leaves:
            given = [
                f"{name} {json.dumps(each)}" for name, each in leaves.items() if each not in (None, [], {})
            ]
            unset = [name for name, each in leaves.items() if each in (None, [], {})]
            words = ", ".join([*given, *([f"not set: {', '.join(unset)}"] if unset else [])])
            yield from textwrap.wrap(
                f"{section}: {words}", _WIDTH, initial_indent="#   ", subsequent_indent="#     "
            )


def _leaves(plain: Mapping[str, Any], around: Key, origins: Origins) -> Iterator[tuple[str, Any]]:
    """Yield the name within its section and the value of each key that was not written."""
    for name, value in plain.items():
        key = (*around, name)
        if isinstance(value, dict) and value:
            yield from _leaves(value, key, origins)
        elif not origins.is_written(key):
            yield ".".join(key[1:] or key), value
