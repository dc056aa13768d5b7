"""Choose the log files to show, their order, and their headings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slurm.runs.logs.attempts import LoggedAttempt, chosen, logged_attempts
from toolkit.errors import RunNotFound
from toolkit.run.run_dir import RunDir

#: The wanted logs: of one rank, of all ranks, or of the batch script.
Rank = int | Literal["all", "batch"]
Attempt = int | Literal["all", "newest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file to show.

    title  heading if several files are shown
    label  prefix of its lines if they are merged with other logs
    group  equal for all logs of one attempt
    """

    path: Path
    group: str
    title: str
    label: str


def sources(run: RunDir, rank: Rank, attempt: Attempt, first: int | None = None) -> list[Source]:
    """Return the wanted logs, oldest attempt first.

    first   the rank whose log comes first in each attempt

    `newest` means the newest attempt with such a log. Raises RunNotFound if no attempt has one.
    """
    if rank == "batch":
        return _of_jobs(run, attempt)
    every = logged_attempts(run)
    wanted = [chosen(run, attempt, every)] if isinstance(attempt, int) else every
    fitting = [each for each in wanted if (each.logs if rank == "all" else rank in each.logs)]
    if not fitting:
        raise RunNotFound(_describe_missing(run, rank, wanted))
    if attempt == "newest":
        fitting = fitting[-1:]
    return [source for each in fitting for source in _of_attempt(each, rank, first)]


def _of_attempt(attempt: LoggedAttempt, rank: Rank, first: int | None) -> list[Source]:
    ranks = [each for each in attempt.logs if rank in ("all", each)]
    ranks.sort(key=lambda each: (each != first, each))
    width = len(str(max(ranks)))
    found = []
    for each in ranks:
        host = f" on {attempt.hosts[each]}" if each in attempt.hosts else ""
        title, label = f"{attempt.title}: rank {each}{host}", f"rank {each:>{width}}"
        found.append(Source(path=attempt.logs[each], group=attempt.nonce, title=title, label=label))
    return found


def _of_jobs(run: RunDir, attempt: Attempt) -> list[Source]:
    """Return the logs of batch scripts and local launchers; the restarts of one job share a file."""
    files = run.job_logs()
    if isinstance(attempt, int):
        job_id = chosen(run, attempt, logged_attempts(run)).job_id
        files = [path for path in files if job_id and path.name.startswith(f"{job_id}.")]
    if not files:
        raise RunNotFound(
            f"{run.run_id} has no log of a batch script in {run.logs}: it was not submitted, has not begun, "
            "or resources.sbatch sends its output elsewhere"
        )
    shown = files[-1:] if attempt == "newest" else files
    return [Source(path=path, group=path.name, title=path.name, label="batch") for path in shown]


def _describe_missing(run: RunDir, rank: Rank, every: Sequence[LoggedAttempt]) -> str:
    with_logs = [each for each in every if each.logs]
    whose = "any rank" if rank == "all" else f"rank {rank}"
    if not with_logs:
        return f"{run.run_id} has no log of {whose} yet in {run.logs}"
    ranks = ", ".join(map(str, with_logs[-1].logs))
    return f"{run.run_id} has no log of {whose} yet in {run.logs}; {with_logs[-1].title} has those of {ranks}"
