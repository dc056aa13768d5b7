"""Starts of a run, as attempts.jsonl and the failures of their ranks tell of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from toolkit.config import Experiment
from toolkit.files import append_json_line
from toolkit.run.attempts.records import read_attempts
from toolkit.run.failure.classes import FAILURE_CLASSES
from toolkit.run.failure.records import failure_record, write_first
from toolkit.run.run_dir import RunDir

STOPS = ("preempted", "time_limit", "requested", "saved", "SIGTERM", "finished")
FAILURES = tuple(FAILURE_CLASSES)


def with_budget(experiment: Experiment, **budgets: int) -> Experiment:
    return replace(experiment, resources=replace(experiment.resources, **budgets))


def start(run: RunDir, *, of: int, to: int | None = None, why: str | None = None, **facts: Any) -> None:
    """An attempt in attempts.jsonl: from a step to a step; to is None where it was killed before its end."""
    number = 1 + len(read_attempts(run))
    line: dict[str, Any] = {
        "attempt": number,
        "nonce": f"start{number}",
        "hosts": ["w1"],
        "time_start": 1000.0 * number,
        "first_step": of,
        "resumed": of > 0,
        **facts,
    }
    if to is not None:
        line.update(last_step=to, time_end=1000.0 * number + 60)
    if to is not None and to > of:
        line["first_step_s"] = 5.0
    if why is not None:
        line["why"] = why
    append_json_line(run.attempts, line)


def crash(run: RunDir, why: str, *, step: int = 7, rank: int = 1, host: str = "w2", of: int = 0) -> None:
    """An attempt that made steps and then failed."""
    blamed = host if FAILURE_CLASSES[why].blames_host else None
    start(run, of=of, to=step, why=why, step=step, rank=rank, host=host, blamed=blamed)


def ranks_of(run: RunDir, nonce: str, *hosts: str, **facts: Any) -> None:
    run.ranks(nonce).parent.mkdir(exist_ok=True)
    for rank, host in enumerate(hosts):
        append_json_line(run.ranks(nonce), {"rank": rank, "host": host, **facts})


def report(run: RunDir, nonce: str, name: str, rank: int, host: str, step: int = 7) -> None:
    write_first(
        run, failure_record(nonce, name, f"{name}!", rank=rank, host=host, phase="forward", step=step)
    )
