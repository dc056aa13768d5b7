"""`stk evaluate` of a run as a small job of its own, which waits for the run to finish."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slurm.hostlist import names_several
from slurm.plan import JobPlan
from slurm.resources import Component
from slurm.sbatch import sbatch_and_keep
from slurm.submissions import Awaited, last_resources
from slurm.submit import start_detached
from toolkit.config import load_resolved
from toolkit.config.schema import Resources
from toolkit.errors import UserError
from toolkit.events import note_event
from toolkit.rundir import RunDir


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPlan(JobPlan):
    """One task that scores the run in whose folder it works; str(plan) is the batch script.

    words   the arguments of `stk evaluate`
    """

    words: tuple[str, ...]

    @property
    def job_name(self) -> str:
        return f"{self.run.run_id}.evaluate"

    def options(self) -> dict[str, object]:
        options = {**JobPlan.options(self), "output": "logs/%j.evaluate.log"}
        # It has nothing to save: it is let run to its limit, or goes back and begins again.
        del options["signal"]
        return options

    def _launch(self, parts: tuple[Component, ...]) -> list[str]:
        command = [self.python, "-P", "-u", "-m", "slurm", "evaluate", str(self.run.path), *self.words]
        return [
            "mkdir -p logs",
            "# A preempted job goes back into the queue only if it does not end by itself before.",
            "trap '' TERM",
            shlex.join(command),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """An evaluation that was handed in."""

    job_id: str
    log: Path

    def to_json(self) -> dict[str, object]:
        """What `stk submit --json` has of it."""
        return {"job_id": self.job_id, "log": str(self.log)}


def words_for(target: str) -> tuple[str, ...]:
    """The arguments of `stk evaluate` for what is to be scored: a file, a folder of benchmarks, or nothing.

    Raises UserError where it is not there.
    """
    if not target:
        return ()
    path = Path(target).expanduser().absolute()
    if path.is_dir():
        return ("--benchmark", str(path))
    if path.is_file():
        return ("--data", str(path))
    raise UserError(f"--evaluate {target}: it is not there; give a data file, or a folder of benchmarks")


def submit_evaluation(
    run: RunDir, words: tuple[str, ...], awaits: Awaited | None, cluster: str
) -> Evaluation:
    """Hand in the evaluation of a run, to begin when that has finished. Raises SchedulerError."""
    plan = EvaluationPlan(
        experiment=load_resolved(run.config),
        resources=single(last_resources(run)),
        run=run,
        awaits=awaits.job_id if awaits else None,
        words=words,
    )
    if cluster == "slurm":
        run.submitit.mkdir(exist_ok=True)
        job_id = sbatch_and_keep(plan, os.environ)
        found = Evaluation(job_id=job_id, log=run.logs / f"{job_id}.evaluate.log")
    else:
        log = run.logs / f"{plan.job_name}.log"
        pid = start_detached(run, ["slurm", "evaluate", str(run.path), *words], log, awaits)
        found = Evaluation(job_id=f"local-{pid}", log=log)
    note_event(run, "evaluation", job_id=found.job_id, arguments=list(words))
    return found


def single(resources: Resources) -> Resources:
    """One task on one host of these resources, with one GPU where the run has any."""
    own: dict[str, Any] = {"nodes": 1, "tasks_per_node": 1, "world_size": None, "groups": (), "hosts": {}}
    if resources.groups or resources.hosts:
        gpus = max([*resources.hosts.values(), *(group.gpus for group in resources.groups)])
        own["gres"] = "gpu:1" if gpus else resources.gres
    elif resources.gres is not None:
        own["gres"] = ",".join(map(_one_of, resources.gres.split(",")))
    if resources.gpus_per_node is not None:
        own["gpus_per_node"] = _one_gpu(resources.gpus_per_node)
    if names_several(resources.nodelist):
        # A job gets all hosts of its list, and this one wants one.
        own["nodelist"] = None
    sbatch = {name: value for name, value in resources.sbatch.items() if name not in ("output", "error")}
    return replace(resources, max_parallel=None, sbatch=sbatch, **own)


def _one_of(gres: str) -> str:
    """The same generic resource with one GPU; another one as it is: gpu:a100:4 -> gpu:a100:1, disk:9."""
    return _one_gpu(gres) if gres.split(":")[0] == "gpu" else gres


def _one_gpu(gpus: str) -> str:
    """One of these GPUs: gpu:a100:4 -> gpu:a100:1, a100:4 -> a100:1, 4 -> 1."""
    kind, colon, count = gpus.rpartition(":")
    return f"{kind}{colon}{min(int(count), 1)}" if count.isdecimal() else gpus
