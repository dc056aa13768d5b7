"""Checks of an experiment before its job waits in the queue: all errors in one message, and warnings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from slurm.config.rank_count import local_processes
from slurm.config.resources import Resources
from slurm.config.sbatch_options import unused_variables
from slurm.config.world_size import world_size
from slurm.submission.batch.job_options import components, signal_lead_s
from toolkit.config.origins import Origins
from toolkit.config.schema import Experiment
from toolkit.config.secrets import split_references
from toolkit.data.prepared.lookup import check_permitted
from toolkit.data.sources.named_files import violation_of
from toolkit.precheck.check_inputs import input_violations
from toolkit.precheck.exactness import exactness_warnings
from toolkit.precheck.schedule import schedule_warnings
from toolkit.precheck.violation_messages import raise_violations, violation_lines
from toolkit.precheck.warm_start import WARM_START, check_shapes
from toolkit.registry import kept_files, task_kinds
from toolkit.run.create_run import run_of
from toolkit.workload import Violation


def check_before_queue(
    experiment: Experiment,
    origins: Origins | None,
    cluster: str,
    coming: Mapping[Path, Experiment] | None = None,
    *,
    reads_data: bool = True,
) -> list[str]:
    """Return a line for each warning. Raise DataError with errors and warnings if the run would fail.

    origins     where the experiment's keys were written
    cluster     slurm or local; with local, requested GPUs are not checked
    coming      runs that will have finished when this one begins, by folder
    reads_data  false if the same data were checked for another run
    """
    found = list(input_violations(experiment, coming=coming, reads_data=reads_data))
    if cluster == "slurm":
        found += ranks_without_gpus(experiment)
    sections = {each.key[0] for each in found}
    if sections.isdisjoint(("data", "model")) and all(each.key != WARM_START for each in found):
        found += check_shapes(experiment)
    warnings = [*schedule_warnings(experiment), *exactness_warnings(experiment)]
    warnings += task_kinds()[experiment.task.kind].file_warnings(experiment)
    is_local = cluster != "slurm"
    if (local_processes(experiment, os.environ) if is_local else world_size(experiment.resources)) > 1:
        warnings += experiment.warnings_of_several_ranks
    if reads_data and "data" not in sections:
        warnings += experiment.data.warnings()
        warnings += violation_of("data.prepared_dir", check_permitted, experiment.data)
    if cluster == "slurm":
        warnings += gpus_without_ranks(experiment)
        warnings += hidden_gpus(experiment)
        warnings += late_warning(experiment)
        warnings += unexpanded_variables(experiment)
    raise_violations(found, origins, warnings)
    lines = violation_lines(warnings, origins)
    if cluster == "slurm":
        lines += unused_variables(experiment.resources, os.environ)
    return lines


def check_code(experiment: Experiment) -> None:
    """Raise UserError if the code of a new run cannot be copied. Submissions find this when they copy it."""
    if not run_of(experiment).code.exists():
        list(kept_files(experiment))


def ranks_without_gpus(experiment: Experiment) -> Iterator[Violation]:
    """Find hosts with fewer GPUs than ranks, if each rank needs one; jobs without any GPU are accepted."""
    if not experiment.each_rank_needs_a_gpu:
        return
    for part in components(experiment.resources):
        gpus, ranks = part.gpus, part.tasks_per_node
        if 0 < gpus < ranks:
            problem = f"{ranks} ranks on each host, but {gpus} GPU{'s' if gpus > 1 else ''} there"
            hint = f"{gpus} ranks, or {ranks} GPUs: each rank needs one (train.device: cpu needs none)"
            yield Violation(key=("resources", _blamed(experiment.resources)), problem=problem, hint=hint)


def gpus_without_ranks(experiment: Experiment) -> Iterator[Violation]:
    """Find hosts with more GPUs than ranks, if each rank uses one: the others would be idle."""
    if not experiment.each_rank_needs_a_gpu or experiment.train.parallel == "dp":
        return
    for part in components(experiment.resources):
        gpus, ranks = part.gpus, part.tasks_per_node
        if gpus > ranks:
            problem = (
                f"{ranks} rank{'s' if ranks > 1 else ''} on each host, but {gpus} GPUs there: "
                f"{gpus - ranks} would be idle"
            )
            hint = f"{gpus} ranks use all of them, with the same result"
            yield Violation(key=("resources", _blamed(experiment.resources)), problem=problem, hint=hint)


def hidden_gpus(experiment: Experiment) -> Iterator[Violation]:
    """Find hosts on which each rank would only see its own GPUs (measured, 22.05)."""
    for part in components(experiment.resources):
        if part.tasks_per_node > 1 and {**part.options, **part.step_options}.get("gpus-per-task"):
            problem = "each rank sees only its own GPUs, so NCCL may not use NVLink between them"
            hint = "gres or gpus_per_node shows them all to every rank of a host"
            yield Violation(key=("resources", "gpus_per_task"), problem=problem, hint=hint)
            return


def late_warning(experiment: Experiment) -> Iterator[Violation]:
    """Find a time limit that is too short for the requested lead of the warning."""
    resources = experiment.resources
    if resources.signal_s != Resources().signal_s and (lead := signal_lead_s(resources)) < resources.signal_s:
        yield Violation(
            key=("resources", "signal_s"),
            problem=f"{resources.signal_s}, but with resources.time={resources.time} the warning comes "
            f"{lead} s before the end: two minutes after its start at the earliest, or in its last sixth",
            hint="a longer resources.time",
        )


def unexpanded_variables(experiment: Experiment) -> Iterator[Violation]:
    """Find variables of the job with text that a shell would replace: their values keep it."""
    for name, value in experiment.resources.environment.items():
        parts = split_references(getattr(value, "reference", value))
        if any(re.search(r"^~|\$[\w{]", part) for part, is_secret in parts if not is_secret):
            problem = "the value is taken literally, with its $ or ~"
            hint = f"${{oc.env:NAME}}, or a line in resources.setup, such as export {name}=…"
            yield Violation(key=("resources", "environment", name), problem=problem, hint=hint)


def _blamed(resources: Resources) -> str:
    """Return the key that sets the number of ranks."""
    return "tasks_per_node" if resources.world_size is None else "world_size"
