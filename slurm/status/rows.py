"""The rows of `stk status`: states of runs, from their folders and Slurm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from slurm.client.queue import UNKNOWN, JobState, poll
from slurm.status import numbers
from slurm.status.liveness import is_of_another
from slurm.status.run_files import Folder, read_folder
from slurm.status.run_state import CANNOT_ASK, LIVE, RunState, is_of, run_state
from toolkit.errors import SchedulerError, SlurmUnavailable
from toolkit.files import read_end
from toolkit.run.attempts.records import steps_done
from toolkit.run.events import last_events
from toolkit.run.records.from_json import whole
from toolkit.run.records.headline import finite, flat_metrics, main_metric
from toolkit.run.run_dir import RunDir
from toolkit.system.garbage_collection import without_collection
from toolkit.system.output.sanitize import number

#: Errors that invalid content of files may cause.
_DAMAGES = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)
#: Bytes of the newest events.
_EVENTS_BYTES = 8192
#: The scheduler's answers about jobs, by id.
Ask = Callable[[Iterable[str]], dict[str, JobState]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """One run as `stk status` shows it; the fields of --json.

    job_id       the newest job; None without one, or if it has ended and the run trains without a job
    doing        the state in plain words
    percent      share of the steps that are done
    eta_s        estimated remaining seconds of a running run
    loss         the newest loss of training
    main_metric, main_value   the main metric of the validation, and its newest value
    main_goal    min or max, as the result recorded it for this metric; else None
    hosts        of the newest attempt
    gpu_hours    of all attempts; None if none used a GPU
    started, updated   times of the first attempt and of the newest update, seconds since the epoch
    sweep        the array that it was submitted with; empty for a single run
    """

    run_id: str
    run_dir: str
    job_id: str | None
    state: str
    step: int = 0
    total_steps: int | None = None
    epoch: float | None = None
    restarts: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    is_live: bool = False
    doing: str = ""
    percent: float | None = None
    eta_s: float | None = None
    loss: float | None = None
    main_metric: str | None = None
    main_value: float | None = None
    main_goal: str | None = None
    tokens_per_s: float | None = None
    hosts: list[str] = field(default_factory=list)
    gpu_hours: float | None = None
    started: float | None = None
    updated: float | None = None
    sweep: str = ""

    @property
    def may_live(self) -> bool:
        """Whether the run is live, or Slurm may have a job of it and does not answer."""
        return self.is_live or (self.state == "unknown" and self.reason.startswith(CANNOT_ASK))

    def check_known(self) -> None:
        """Raise SlurmUnavailable if Slurm may have a job of the run and does not answer."""
        if self.may_live and not self.is_live:
            raise SlurmUnavailable(f"{self.run_id}: {self.reason}")

    def to_json(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__slots__}
        # Fields for code only, not for --json.
        del fields["is_live"], fields["main_goal"]
        return fields


def status(runs: Sequence[RunDir], ask: Ask = poll) -> list[RunStatus]:
    """Return the status of these runs, with at most two calls of Slurm for any number.

    If the controller does not answer, only the folders are read, and the reason says so.

    ask  returns the scheduler's answers about jobs, by id; raises SchedulerError
    """
    # Without garbage collection, ten thousand runs take a fifth less time.
    with without_collection():
        folders = [read_folder(run) for run in runs]
        jobs = _poll((folder.job_id for folder in folders), ask)
        now = time.time()
        return [_row_or_fault(*_newer(folder, jobs.get(folder.job_id or "")), now) for folder in folders]


def _newer(folder: Folder, job: JobState | None) -> tuple[Folder, JobState | None]:
    """Return the folder and its job; read again if the job may have ended while Slurm was asked.

    The run may have finished meanwhile: without its result, the end of its job looks like a failure.
    """
    if job is None or job.state in LIVE or folder.failure is not None:
        return folder, job
    newer = read_folder(folder.run)
    # Its next job may have been submitted meanwhile, about which Slurm was not asked.
    return newer, job if newer.job_id in (None, folder.job_id) else JobState(state="pending")


def _poll(job_ids: Iterable[str | None], ask: Ask) -> dict[str, JobState]:
    ids = [job_id for job_id in job_ids if job_id is not None]
    try:
        return ask(ids) if ids else {}
    except SlurmUnavailable as error:
        why = str(error).partition(":")[0] if "not on PATH" in str(error) else "no controller answers"
    except SchedulerError as error:
        why = str(error).splitlines()[0]
    return dict.fromkeys(ids, JobState(state="unknown", reason=f"{CANNOT_ASK}: {why}"))


def _row_or_fault(folder: Folder, job: JobState | None, now: float) -> RunStatus:
    """Return the row of a run; if its files are damaged, a row with the error, so that others are shown."""
    try:
        return _row(folder, job, now)
    except _DAMAGES as error:
        return RunStatus(
            run_id=folder.run.run_id,
            run_dir=str(folder.run.path),
            job_id=folder.job_id,
            state="unknown",
            reason=f"its files have invalid content ({type(error).__name__}: {str(error)[:100]})",
            doing="unknown",
        )


def _row(folder: Folder, job: JobState | None, now: float) -> RunStatus:
    submission = folder.submission
    if job and submission and is_of_another(submission, job.work_dir, job.name, folder.run):
        job = UNKNOWN
    found = run_state(folder, job, now)
    document = folder.result or folder.progress
    recorded = flat_metrics(document)
    metrics = finite(recorded)
    last = folder.last_attempt
    step = steps_done(document, None if folder.result else last) or 0
    total_steps = step if folder.result else whole(document.get("total_steps"))
    main, value = main_metric(recorded) or (None, None)
    failed = folder.failure and folder.failure.time
    seen = numbers.newest(document.get("time"), last and last.time_end, last and last.time_start, failed)
    # The newest job has ended, and the run trains in a terminal since.
    is_job_over = found.is_live and job is not None and (job.is_terminal or job == UNKNOWN)
    is_running = found.state == "running"
    is_at_work = is_running and last is not None and is_of(last, job)
    return RunStatus(
        run_id=folder.run.run_id,
        run_dir=str(folder.run.path),
        job_id=None if submission is None or is_job_over else submission.job_id,
        state=found.state,
        step=step,
        total_steps=total_steps,
        epoch=number(document.get("epoch")),
        restarts=max(0, len(folder.attempts) - 1),
        metrics=metrics,
        reason=_reason(folder, found),
        is_live=found.is_live,
        doing=found.doing,
        percent=numbers.percent(step, total_steps),
        eta_s=numbers.eta_s(folder.attempts, folder.progress, now) if is_running else None,
        loss=metrics.get("train_loss"),
        main_metric=main,
        main_value=value,
        main_goal=_recorded_goal(document, main),
        tokens_per_s=metrics.get("train_tokens_per_s"),
        hosts=list(last.hosts) if last else [],
        gpu_hours=numbers.gpu_hours(folder.attempts, now if is_at_work else seen or now),
        started=folder.attempts[0].time_start if folder.attempts else None,
        updated=numbers.newest(seen, submission and submission.time),
        sweep=submission.array if submission else "",
    )


def _recorded_goal(document: dict[str, Any], metric: str | None) -> str | None:
    """Return min or max, if the result recorded the goal of this metric; else None."""
    best = document.get("best")
    name, _, goal = str(best.get("metric") if isinstance(best, dict) else "").partition(":")
    return goal if name == metric and goal in ("min", "max") else None


def _reason(folder: Folder, found: RunState) -> str:
    """Return the reason, with hints on missing saves and damaged files."""
    faults = [fault for fault in folder.faults if fault not in found.reason]
    return "; ".join(
        filter(None, [found.reason, _failed_save(folder, found), _unsaved(folder, found), *faults])
    )


def _failed_save(folder: Folder, found: RunState) -> str:
    """Return a hint if the newest save of a live run failed, as on a full disk; else an empty text."""
    if not found.is_live or b'"save_failed"' not in read_end(folder.run.events, _EVENTS_BYTES):
        return ""
    saves = [event for event in last_events(folder.run) if event.name in ("save", "save_failed")]
    if not saves or saves[-1].name == "save":
        return ""
    facts = saves[-1].facts
    return f"its save of step {facts.get('step')} failed: {str(facts.get('reason')).partition(': ')[2]}"


def _unsaved(folder: Folder, found: RunState) -> str:
    """Return a hint if no attempt has saved and the run may continue; else an empty text."""
    if found.state in ("finished", "failed"):
        return ""
    known = [each for each in folder.attempts if each.saved is not None]
    has_ended = any(each.time_end is not None for each in known)
    if not has_ended or any(each.saved for each in known):
        return ""
    # An attempt that was killed may not have recorded its save.
    if any(folder.run.checkpoints.glob("[!.]*")):
        return ""
    if any(each.wrote for each in known):
        return "it has saved nothing in STK_CHECKPOINT_DIR; its files in work/ stay"
    return "it has saved nothing, so each attempt begins from scratch unless it saves elsewhere"
