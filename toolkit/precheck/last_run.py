"""The last run of an experiment's name: what differs from it, and what this one will take."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolkit.config import load_resolved, to_plain
from toolkit.config.schema import Experiment
from toolkit.errors import StkError
from toolkit.monitoring.usage.values import read_usage
from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import RunDir, experiment_dir

#: Other runs of the same name that are looked at, and differences that are shown.
_RUNS, _MOST = 20, 8


def newest_run(name: str) -> RunDir | None:
    """The run of this name that was started last, of the last ones by their ids; None where there is none."""
    runs = map(RunDir, sorted(experiment_dir().glob(f"{name}-*"))[-_RUNS:])
    return max((run for run in runs if run.attempts.exists()), key=_age, default=None)


def _age(run: RunDir) -> float:
    return run.attempts.stat().st_mtime


def compared_with(run: RunDir, experiment: Experiment, steps: int | None) -> Iterator[str]:
    """Sentences on what differs from an earlier run, on the time that its pace gives, and on its memory.

    steps  of the experiment; None where they are not known
    """
    yield from _differences(run, experiment)
    attempts = read_attempts(run)
    paces = [each.step_s for each in attempts if each.step_s is not None]
    if paces and steps is not None:
        yield f"its steps took {paces[-1]:.3g} s: {steps:,} of them take about {_time(steps * paces[-1])}"
    ranks = read_usage(run, attempts[-1].nonce) if attempts else []
    if ranks:
        gpus = [rank.gpu.memory_peak_mb for rank in ranks if rank.gpu is not None]
        of_gpu = f", and {max(gpus) / 1024:.1f} GiB on its GPU" if gpus else ""
        peak = max(rank.rss_peak_mb for rank in ranks) / 1024
        yield f"each rank took at most {peak:.1f} GiB of memory{of_gpu}"


def _differences(run: RunDir, experiment: Experiment) -> Iterator[str]:
    try:
        before = dict(_leaves(to_plain(load_resolved(run.config)), ()))
    except (StkError, OSError):
        # Of a version with other keys, say.
        return
    now = dict(_leaves(to_plain(experiment), ()))
    changed = [key for key in now if now[key] != before.get(key)]
    if not changed:
        yield f"as in {run.run_id}, the last run of this name"
        return
    yield f"unlike {run.run_id}, the last run of this name:"
    for key in changed[:_MOST]:
        yield f"  {'.'.join(key)}: {json.dumps(before.get(key))} -> {json.dumps(now[key])}"
    if len(changed) > _MOST:
        yield f"  and {len(changed) - _MOST} more"


def _leaves(plain: Mapping[str, Any], around: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in plain.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*around, name))
        else:
            yield (*around, name), value


def _time(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
