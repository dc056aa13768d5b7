"""`stk evaluate` as a separate small job that waits for its run to finish."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path

from slurm.client import programs
from slurm.client.queue import TERMINAL, poll
from slurm.status.submissions import Awaited, find_job, found_or_lost, last_resources
from slurm.submission.batch.batch_script import JobPlan
from slurm.submission.batch.job_options import Component
from slurm.submission.batch.single_task import single_task, with_one_gpu
from slurm.submission.submit import start_detached
from slurm.submission.submit_job import make_submitit, renamed, sbatch
from toolkit.config import load_resolved
from toolkit.errors import UserError
from toolkit.registry import installed, load_code, task_kinds
from toolkit.run.events import note_event, read_events
from toolkit.run.run_dir import RunDir

_EVENT = "evaluation"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPlan(JobPlan):
    """A job of one task that scores the run of its working directory; str(plan) is the batch script.

    words   the arguments of `stk evaluate`
    number  the number of earlier evaluations, for a name that no other job of the run has
    """

    words: tuple[str, ...]

    @property
    def job_name(self) -> str:
        return f"{self.run.run_id}.evaluate.{self.number}"

    def options(self) -> dict[str, object]:
        options = {**JobPlan.options(self), "output": "logs/%j.evaluate.log"}
        # It needs no warning, because it has nothing to save: after a preemption it starts again.
        del options["signal"]
        return options

    def _launch(self, parts: tuple[Component, ...]) -> list[str]:
        command = [self.python, "-P", "-u", "-m", "slurm", "evaluate", str(self.run.path), *self.words]
        return [
            "mkdir -p logs",
            "# Slurm requeues a preempted job only if it does not end by itself before.",
            "trap '' TERM",
            shlex.join(command),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A job that scores a run; its fields are those of `stk submit --json`."""

    job_id: str
    log: str


def words_for(target: str, kind: str) -> tuple[str, ...]:
    """Return the arguments of `stk evaluate` for a target: a file, a folder of benchmarks, or "".

    Raises UserError if it does not exist, or if no run of this kind of task can be scored on it.
    """
    spec, path = task_kinds()[kind], Path(target).expanduser().absolute()
    if not spec.task:
        raise UserError("--evaluate: the run's own program trains it, and only this program can score it")
    if not target:
        return ()
    if not (path.is_dir() or path.is_file()):
        raise UserError(
            f"--evaluate {target}: it does not exist; give a data file, or a folder of benchmarks"
        )
    if path.is_file() and "path" in signature(spec.data).parameters:
        return ("--data", str(path))
    added = installed(kind).workload.evaluate
    if path.is_dir() and added and "benchmark" in [mode.option for mode in load_code(added).modes]:
        return ("--benchmark", str(path))
    what = "folder" if path.is_dir() else "file"
    raise UserError(f"--evaluate {target}: a run of the task {kind} cannot be scored on a {what}")


def submit_evaluation(
    run: RunDir, words: tuple[str, ...], awaits: Awaited | None, cluster: str
) -> Evaluation:
    """Submit the evaluation of a run, to begin when the run has finished, unless its Slurm job is live.

    Raises AnswerLost if its job may exist although it cannot be found, SchedulerError otherwise.
    """
    asked = last_resources(run)
    plan = EvaluationPlan(
        experiment=replace(load_resolved(run.config), resources=single_task(asked, **with_one_gpu(asked))),
        run=run,
        number=sum(1 for _ in read_events(run, _EVENT)),
        awaits=awaits.job_id if awaits else None,
        words=words,
    )
    if cluster == "slurm":
        make_submitit(run)
        job_id = _live_job(run, words, awaits) or _submitted(plan)
        found = Evaluation(job_id=job_id, log=str(run.logs / f"{job_id}.evaluate.log"))
    else:
        log = run.logs / f"{plan.job_name}.log"
        pid = start_detached(run, ["slurm", "evaluate", str(run.path), *words], log, awaits)
        found = Evaluation(job_id=f"local-{pid}", log=str(log))
    note_event(run, _EVENT, job_id=found.job_id, arguments=list(words))
    return found


def _live_job(run: RunDir, words: tuple[str, ...], awaits: Awaited | None) -> str | None:
    """Return the newest job with these arguments if it waits or runs; else None."""
    asked = [event.facts for event in read_events(run, _EVENT) if event.facts["arguments"] == [*words]]
    for job_id in [facts["job_id"] for facts in asked if facts["job_id"].isdigit()][-1:]:
        now = poll([job_id])[job_id]
        # If it waits for an earlier job of the run, it will never begin.
        begins = awaits is None or renamed(now.depends, awaits.job_id or "", "") != now.depends
        if now.state not in ("unknown", *TERMINAL) and begins:
            return str(job_id)
    return None


def _submitted(plan: EvaluationPlan) -> str:
    """Submit a plan and return its job's id; after a lost answer look for the job by its name."""
    asked = time.time()
    try:
        return sbatch(plan, os.environ)
    except programs.AnswerLost as lost:
        # Without an intent as for a training: scoring twice only finds the scores of the first time.
        hint = (
            f"The job that scores {plan.run.run_id} may exist nevertheless: see squeue for {plan.job_name} "
            "before you repeat the command"
        )
        return found_or_lost(lost, lambda: find_job(plan.job_name, plan.run.path, since=asked), hint)
