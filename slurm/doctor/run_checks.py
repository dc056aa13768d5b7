"""All findings, in order: the cluster, this machine, a host of the cluster, file systems, an experiment."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from slurm.client import programs
from slurm.config.resources import Resources
from slurm.doctor.checks import experiment as of_experiment
from slurm.doctor.checks import files, machine
from slurm.doctor.checks.preemption import preemption
from slurm.doctor.checks.rules import hosts, limits, requeueing, scheduler
from slurm.doctor.checks.saves import Saves, measured_saves
from slurm.doctor.cluster import Cluster, read_cluster
from slurm.doctor.findings import NOTE, PROBLEM, Finding
from slurm.doctor.partitions import PartitionRow, rows
from slurm.doctor.remote_probe import WAIT_S, ask_on_host
from slurm.submission.batch.job_options import partitions_of
from toolkit.config import run_id
from toolkit.config.schema import Experiment
from toolkit.errors import SchedulerError, UserError
from toolkit.monitoring.diagnostics.child_process import ask_here
from toolkit.run.run_dir import experiment_dir

_QUICK_S, _FILES_S, _TORCH_S = 30.0, 60.0, 180.0
_ELSEWHERE = "`stk doctor --on-node` looks at a host of the cluster"
_CODE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All findings.

    cluster     name of the cluster, empty without Slurm
    sections    by their titles
    partitions  a row for each, the default one first
    facts       the machines' answers, by place: `here`, and `host` if one was checked
    """

    cluster: str
    sections: Mapping[str, Sequence[Finding]]
    partitions: tuple[PartitionRow, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def has_problem(self) -> bool:
        """Whether there is a problem that must be solved before a job can work."""
        return any(each.level == PROBLEM for found in self.sections.values() for each in found)

    def to_json(self) -> dict[str, Any]:
        """Return the document of --json."""
        return {
            "cluster": self.cluster,
            "findings": [
                {"section": title, **asdict(each)} for title, found in self.sections.items() for each in found
            ],
            "partitions": [asdict(row) for row in self.partitions],
            "facts": self.facts,
        }


def examine(
    experiment: Experiment | None,
    *,
    asks_slurm: bool,
    wants_slurm: bool,
    partition: str,
    on_node: bool,
    say: Callable[[str], None],
) -> Report:
    """Check everything and report progress to `say`. Raises SchedulerError, UserError.

    asks_slurm   whether to query a cluster; raises SchedulerError if none answers
    wants_slurm  whether to report a missing answer of an installed Slurm as a problem
    partition    the only partition to show and to check; empty: show all, check that of the experiment
    on_node      whether to check a host of the cluster, too
    """
    cluster = None
    if asks_slurm:
        say("asking Slurm")
        cluster = read_cluster()
        _check_partition(partition, cluster)
    experiments = experiment_dir()
    here = _ask_here(experiments, say)
    # Not read if the file system did not answer just now.
    saves = measured_saves(experiments) if "path" in here["runs"] else None
    if cluster is None:
        found = {"Slurm": [_without_slurm(wants_slurm)]}
    else:
        found = _of_cluster(cluster, saves, partition)
    host = here.get("machine", {}).get("host", "")
    on_machine = machine.findings(here, "" if cluster is None else _ELSEWHERE)
    found[f"This machine{f', {host}' if host else ''}"] = list(on_machine)
    there: dict[str, Any] | None = None
    if on_node and cluster is not None:
        there, complaint = _ask_on_host(experiment, cluster, partition, experiments, say)
        name = there.get("machine", {}).get("host", "")
        found[f"Host {name}" if name else "A host of the cluster"] = _of_host(name, there, complaint)
    found["Files"] = list(_of_files(here))
    if experiment is not None:
        say("checking the experiment")
        of_it = _of_experiment(experiment, cluster, saves, here)
        found[f"Experiment {run_id(experiment)}"] = list(of_it)
    every = [] if cluster is None else rows(cluster)
    return Report(
        cluster="" if cluster is None else cluster.value("ClusterName"),
        sections=found,
        partitions=tuple(row for row in every if partition in ("", row.name)),
        facts={"here": here, "host": there},
    )


def _check_partition(name: str, cluster: Cluster) -> None:
    known = [each.name for each in cluster.partitions]
    if name and known and name not in known:
        raise UserError(f"--partition is {name!r}: there is no such partition; there are {', '.join(known)}")


# -- asking


def _ask_here(experiments: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the answers of child processes; they run in sequence, so none slows another down."""
    say("looking at this machine")
    facts = ask_here(["machine", "gpus"], _QUICK_S)
    say("trying the file systems")
    # Only the folder of runs is written to.
    questions = {"runs": f"folder={experiments}", "code": f"mount={_CODE}"}
    if data := os.environ.get("STK_DATA_DIR"):
        questions["data"] = f"mount={Path(data).resolve()}"
    for name, question in questions.items():
        facts[name] = _only(ask_here([question], _FILES_S))
    say("importing torch")
    return {**facts, "torch": _only(ask_here(["torch"], _TORCH_S))}


def _only(answers: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to one question; a failure gives a dictionary with its reason as `why`."""
    answer = next((each for each in answers.values() if isinstance(each, dict)), None)
    return answer or {"why": answers.get("why", "no answer")}


def _ask_on_host(
    experiment: Experiment | None,
    cluster: Cluster,
    partition: str,
    experiments: Path,
    say: Callable[[str], None],
) -> tuple[dict[str, Any], str]:
    """Return the answers of a host, and srun's error message, empty on success."""
    resources = experiment.resources if experiment else Resources()
    partition = partition or next(iter(partitions_of(resources, cluster.partitions)), "")
    if not partition:
        raise UserError("this cluster has no default partition: say where with --partition")
    say(f"checking a host of partition {partition}; may wait {WAIT_S} s for one")
    try:
        return ask_on_host(cluster, partition, resources, experiments)
    except (SchedulerError, OSError) as error:
        return {}, str(error)


# -- what it means


def _of_cluster(cluster: Cluster, saves: Saves | None, partition: str) -> dict[str, list[Finding]]:
    return {
        "Slurm": list(scheduler(cluster)),
        "Time limits and preemption": list(preemption(cluster, saves, partition)),
        "Requeue": list(requeueing(cluster)),
        "Limits": list(limits(cluster)),
        "Hosts": list(hosts(cluster)),
    }


def _without_slurm(wants_slurm: bool) -> Finding:
    follows = "`stk submit` trains in processes of this machine"
    if not programs.is_installed():
        return Finding(NOTE, "Slurm is not installed here", follows)
    if wants_slurm:
        return Finding(PROBLEM, "Slurm is installed, but no controller answers (scontrol ping)", follows)
    return Finding(NOTE, "Slurm was not asked", follows)


def _of_host(host: str, there: dict[str, Any], complaint: str) -> list[Finding]:
    found = list(machine.findings(there))
    if "exchange" in there:
        found += files.exchanged(host, there["exchange"])
    if "nodes are busy" in complaint:
        busy = f"no host was free within {WAIT_S} s"
        found.append(Finding(NOTE, busy, "nothing stays in the queue; try later, or another --partition"))
    elif complaint:
        lines = [line.strip() for line in complaint.splitlines() if line.strip()]
        follows = "a job of yours may fail in the same way"
        if "No such file or directory" in complaint:
            follows = f"is {sys.executable} in a folder that all hosts share?"
        found.append(Finding(PROBLEM, f"a step on a host failed: {lines[-1]}", follows))
    return found


def _of_files(here: dict[str, Any]) -> Iterator[Finding]:
    variables = {"runs": "STK_EXPERIMENT_DIR", "data": "STK_DATA_DIR", "code": ""}
    for what, variable in variables.items():
        if what in here:
            yield from files.findings(what, variable, here[what])


def _of_experiment(
    experiment: Experiment, cluster: Cluster | None, saves: Saves | None, here: dict[str, Any]
) -> Iterator[Finding]:
    if cluster is not None:
        yield from of_experiment.on_cluster(experiment, cluster, saves)
    if "free_mb" in here["runs"]:
        yield from of_experiment.room(experiment, here["runs"]["free_mb"])
