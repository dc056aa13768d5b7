"""The last run of the same name: the differences from it, and its time and memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from toolkit.config import load_resolved, to_plain
from toolkit.config.checking.validate import with_own_code
from toolkit.config.schema import Experiment
from toolkit.config.serialize import flat
from toolkit.errors import ConfigError, StkError
from toolkit.monitoring.usage.values import read_usage
from toolkit.registry import task_kinds
from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import RunDir, runs_of_experiment
from toolkit.system.output.amounts import duration, size_mb
from toolkit.system.output.few import few

#: Maximum number of differences that are shown.
_MOST = 8
#: Sections whose keys are the parameters of own functions.
_OF_FUNCTIONS = ("model.", "data.")


def newest_run(name: str) -> RunDir | None:
    """The run of this name that was started last, or None."""
    started = (run for run in runs_of_experiment(name) if run.attempts.exists())
    return max(started, key=lambda run: run.attempts.stat().st_mtime, default=None)


def compared_with(run: RunDir, experiment: Experiment, steps: int | None) -> Iterator[str]:
    """Yield lines: the differences from an earlier run, the expected time, the memory of that run.

    steps  the steps of the experiment; None if they are not known
    """
    yield from _differences(run, experiment)
    attempts = read_attempts(run)
    paces = [each.step_s for each in attempts if each.step_s is not None]
    if paces and steps is not None:
        yield f"its steps took {paces[-1]:.3g} s: {steps:,} of them take about {duration(steps * paces[-1])}"
    ranks = read_usage(run, attempts[-1].nonce) if attempts else []
    if ranks:
        gpus = [rank.gpu.memory_peak_mb for rank in ranks if rank.gpu is not None]
        of_gpu = f"; its GPU held at most {size_mb(max(gpus))}, of all processes" if gpus else ""
        peak = max(rank.rss_peak_mb for rank in ranks)
        yield f"each rank took at most {size_mb(peak)} of memory{of_gpu}"


def other_run_by_code(run: RunDir, experiment: Experiment) -> list[str]:
    """Return a message if edited code has made another run of the last one, which has not finished.

    The parameters of own functions are keys, and with another key an experiment is another run.
    """
    if run.path.exists() or task_kinds()[experiment.task.kind].own_sections is None:
        return []
    with suppress(StkError, OSError):
        last = newest_run(experiment.name)
        if last is None or last.result.exists():
            return []
        stored = load_resolved(last.config)
        before, now = _identity_keys(stored), _identity_keys(experiment)
        keys = sorted(before.keys() ^ now.keys())
        is_same = all(before[key] == now[key] for key in before.keys() & now.keys())
        if keys and is_same and all(key.startswith(_OF_FUNCTIONS) for key in keys):
            hint = f" (once that one has ended, stk resume {last.run_id} --new-code continues it)"
            return [
                f"{run.run_id} is another run than {last.run_id}, because only one of them has "
                f"{few(keys, _MOST)}{hint if _would_be_same(stored, now) else ''}"
            ]
    return []


def identity_changes(run: RunDir, experiment: Experiment) -> list[str]:
    """Return the keys that make an experiment another run; empty if the run's config cannot be read."""
    with suppress(StkError, OSError):
        before, now = _identity_keys(load_resolved(run.config)), _identity_keys(experiment)
        return [key for key in {**now, **before} if now.get(key) != before.get(key)]
    return []


def _identity_keys(experiment: Experiment) -> dict[str, Any]:
    return flat(to_plain(experiment, identity_only=True))


def _would_be_same(stored: Experiment, now: Mapping[str, Any]) -> bool:
    """Whether an earlier experiment has these keys with the code as it is now."""
    with suppress(ConfigError):
        then = _identity_keys(with_own_code(stored, stored.name))
        return all(then.get(key) == now.get(key) for key in {**then, **now} if key.startswith(_OF_FUNCTIONS))
    return False


def _differences(run: RunDir, experiment: Experiment) -> Iterator[str]:
    try:
        before = flat(to_plain(load_resolved(run.config)))
    except (StkError, OSError):
        # For example, another version of the toolkit wrote it.
        return
    now = flat(to_plain(experiment))
    changed = [key for key in {**now, **before} if now.get(key) != before.get(key)]
    if not changed:
        yield f"as in {run.run_id}, the last run of this name"
        return
    yield f"unlike {run.run_id}, the last run of this name:"
    for key in changed[:_MOST]:
        yield f"  {key}: {json.dumps(before.get(key))} -> {json.dumps(now.get(key))}"
    if len(changed) > _MOST:
        yield f"  and {len(changed) - _MOST} more"
