"""Check an experiment on this cluster: do hosts fit, is there time for a save, is there free space?"""

from __future__ import annotations

from collections.abc import Iterator

from slurm.client.quantities import format_minutes
from slurm.config.world_size import world_size
from slurm.doctor.checks.saves import Saves, saves_of
from slurm.doctor.cluster import Cluster
from slurm.doctor.findings import CHANGE, NOTE, OK, PROBLEM, Finding
from slurm.job.save_budget import budgets_of_request, measured_lead_s, takes_too_long
from slurm.submission.batch.job_options import partitions_of
from slurm.submission.checks.early_checks import hidden_gpus
from slurm.submission.checks.preflight import check_fits, read_facts
from toolkit.config.schema import Experiment
from toolkit.errors import StkError
from toolkit.run.create_run import run_of
from toolkit.system.output.amounts import size, size_mb

#: Checkpoints besides the newest ones: the best, and the one that is being written.
_MORE_CHECKPOINTS = 2
#: With several ranks: the last whose weights were compared, and its best.
_COMPARED_CHECKPOINTS = 2
#: Keys that the cure of a budget may name.
_KEYS = ("resources.time", "checkpoint.every_steps")


def on_cluster(experiment: Experiment, cluster: Cluster, saves: Saves | None) -> Iterator[Finding]:
    """Yield findings about an experiment on a cluster. Makes four short calls of Slurm's programs.

    saves  of other runs, used if this one has none yet
    """
    try:
        reasons = check_fits(experiment.resources, read_facts(experiment.resources))
        for reason in reasons:
            yield Finding(PROBLEM, reason, "such a job would be refused, or be pending for ever", "resources")
        if not reasons:
            yield Finding(OK, "there are hosts that fit it")
        for found in hidden_gpus(experiment):
            yield Finding(CHANGE, found.problem, found.hint, ".".join(found.key))
        yield from _time(experiment, cluster)
        yield from _warning(experiment, saves)
    except StkError as error:
        yield Finding(PROBLEM, f"it cannot be checked: {error}")


def _time(experiment: Experiment, cluster: Cluster) -> Iterator[Finding]:
    if experiment.resources.time is not None:
        return
    names = partitions_of(experiment.resources, cluster.partitions)
    for each in cluster.partitions:
        if each.name not in names:
            continue
        minutes = each.max_time_min if each.default_time_min is None else each.default_time_min
        if minutes is not None:
            found = f"it requests no time and gets {format_minutes(minutes)} in partition {each.name}"
            follows = "the run then continues in another job; a shorter limit often starts sooner"
            yield Finding(NOTE, found, follows, "resources.time")


def _warning(experiment: Experiment, saves: Saves | None) -> Iterator[Finding]:
    """Check whether a step and a save fit between a stop signal and the end of the job."""
    own_s = measured_lead_s(run_of(experiment))
    lead_s = own_s if own_s is not None else saves.longest_s if saves else None
    budgets = budgets_of_request(experiment.resources)
    if lead_s is None:
        shown = "".join(f"; {budget.name} leaves {budget.seconds:g} s" for budget in budgets)
        yield Finding(NOTE, f"no save of it has been measured yet{shown}", "the first save shows if it fits")
        return
    whose = "" if own_s is not None else " (measured in another run)"
    found = f"a step and a save take {lead_s:.1f} s{whose}"
    short = [budget for budget in budgets if takes_too_long(lead_s, budget.seconds)]
    for budget in short:
        key = next((key for key in _KEYS if key in budget.cure), "")
        yield Finding(CHANGE, f"{found}, but {budget.name} leaves {budget.seconds:g} s", budget.cure, key)
    if not short:
        yield Finding(OK, f"{found}, and near the time limit it leaves early enough for both")


def room(experiment: Experiment, free_mb: int) -> Iterator[Finding]:
    """Check whether there is space for its checkpoints, if their size is known from earlier saves."""
    largest = max((size for _, size in saves_of(run_of(experiment))), default=0)
    if not largest:
        return
    number = experiment.checkpoint.keep + _MORE_CHECKPOINTS
    if world_size(experiment.resources) > 1 and experiment.train.check_ranks_every is not None:
        number += _COMPARED_CHECKPOINTS
    needed_mb = largest * number // (1 << 20)
    found = f"its checkpoints of {size(largest)} take up to {size_mb(needed_mb)}; {size_mb(free_mb)} are free"
    if needed_mb > free_mb:
        yield Finding(CHANGE, found, "free space, or keep fewer", "checkpoint.keep")
    else:
        yield Finding(OK, found)
