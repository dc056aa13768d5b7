"""Where runs stand: what their folders say and what the scheduler says, put together."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from slurm.queue import JobState, poll
from slurm.status import figures
from slurm.status.alive import is_launcher_alive, is_training_here
from slurm.status.folder import Folder, read_folder
from slurm.status.verdict import CANNOT_ASK, Verdict, judge
from toolkit.errors import SchedulerError, SlurmUnavailable
from toolkit.metrics.headline import main_metric
from toolkit.rundir import RunDir

#: What the scheduler says of jobs, by id.
Ask = Callable[[Iterable[str]], dict[str, JobState]]

__all__ = ["CANNOT_ASK", "Ask", "RunStatus", "is_launcher_alive", "is_training_here", "status"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """One run as `stk status` shows it; the fields of --json.

    doing        the state in the user's words
    percent      of the steps
    eta_s        seconds that the rest will take, while it runs
    loss         of training, the newest
    main_metric, main_value   the validation's main metric, and its newest value
    hosts        of the newest start
    gpu_hours    of all starts; None where none computed on a GPU
    started, updated   the first start and the newest sign of life, seconds since the epoch
    sweep        the array that it was submitted with; empty where there is none
    """

    run_id: str
    run_dir: str
    job_id: str | None
    state: str
    step: int
    total_steps: int | None
    epoch: float | None
    restarts: int
    metrics: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    is_live: bool = False
    doing: str = ""
    percent: float | None = None
    eta_s: float | None = None
    loss: float | None = None
    main_metric: str | None = None
    main_value: float | None = None
    tokens_per_s: float | None = None
    hosts: list[str] = field(default_factory=list)
    gpu_hours: float | None = None
    started: float | None = None
    updated: float | None = None
    sweep: str = ""

    def to_json(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__slots__}
        # What follows from the state, for the code that asks.
        del fields["is_live"]
        return fields


def status(runs: Sequence[RunDir], ask: Ask = poll) -> list[RunStatus]:
    """The status of these runs, with at most two scheduler calls whatever their number.

    Where the controller does not answer, the folders alone are asked and the reason says so.

    ask  what the scheduler says of jobs, by id; raises SchedulerError
    """
    with _without_collection():
        folders = [read_folder(run) for run in runs]
        jobs = _poll((folder.job_id for folder in folders), ask)
        now = time.time()
        return [_row(folder, jobs.get(folder.job_id or ""), now) for folder in folders]


@contextmanager
def _without_collection() -> Iterator[None]:
    """Look for no garbage meanwhile: what is made here has no cycles, and is all kept.

    For ten thousand runs that takes a fifth of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _poll(job_ids: Iterable[str | None], ask: Ask) -> dict[str, JobState]:
    ids = [job_id for job_id in job_ids if job_id is not None]
    try:
        return ask(ids) if ids else {}
    except SlurmUnavailable as error:
        why = str(error).partition(":")[0] if "not on PATH" in str(error) else "no controller answers"
    except SchedulerError as error:
        why = str(error).splitlines()[0]
    return dict.fromkeys(ids, JobState(state="unknown", reason=f"{CANNOT_ASK}: {why}"))


def _row(folder: Folder, job: JobState | None, now: float) -> RunStatus:
    verdict = judge(folder, job, now)
    document = folder.result or folder.progress
    metrics = figures.metrics(document)
    step = figures.whole(document.get("step")) or 0
    total_steps = step if folder.result else figures.whole(document.get("total_steps"))
    main, value = main_metric(metrics) or (None, None)
    last, first = folder.last_start, folder.starts[0] if folder.starts else {}
    submitted = folder.submission.time if folder.submission else None
    failed = folder.failure.get("time")
    updated = figures.newest(
        document.get("time"), last.get("time_end"), last.get("time_start"), submitted, failed
    )
    is_running = verdict.state == "running"
    return RunStatus(
        run_id=folder.run.run_id,
        run_dir=str(folder.run.path),
        job_id=folder.submission.job_id if folder.submission else None,
        state=verdict.state,
        step=step,
        total_steps=total_steps,
        epoch=figures.number(document.get("epoch")),
        restarts=max(0, len(folder.starts) - 1),
        metrics=metrics,
        reason=_reason(folder, verdict),
        is_live=verdict.is_live,
        doing=verdict.doing,
        percent=figures.percent(step, total_steps),
        eta_s=figures.eta_s(folder.starts, folder.progress, now) if is_running else None,
        loss=metrics.get("train_loss"),
        main_metric=main,
        main_value=value,
        tokens_per_s=metrics.get("train_tokens_per_s"),
        hosts=figures.hosts(last),
        gpu_hours=figures.gpu_hours(folder.starts, now if is_running else updated or now),
        started=figures.number(first.get("time_start")),
        updated=updated,
        sweep=folder.sweep,
    )


def _reason(folder: Folder, verdict: Verdict) -> str:
    """Why, and which of its files are damaged."""
    faults = [fault for fault in folder.faults if fault not in verdict.reason]
    return "; ".join(filter(None, [verdict.reason, *faults]))
