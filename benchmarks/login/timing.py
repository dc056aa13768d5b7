"""The cost of a command: its wall time, and the CPU time of it and its child processes."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from benchmarks.measuring.rounds import Process


def taken(command: Sequence[str], variables: Mapping[str, str]) -> dict[str, float]:
    """Run a command; return its `wall_s` and `cpu_s`. No other child of this process may end meanwhile.

    Raises ChildFailed.
    """
    used, started = _cpu_s(), time.perf_counter()
    Process(command, variables).finish()
    return {"wall_s": time.perf_counter() - started, "cpu_s": _cpu_s() - used}


def median_of(measure: Callable[[], dict[str, float]], times: int) -> dict[str, float]:
    """Return the median of each figure over several measurements: one round of a very short command."""
    found = [measure() for _ in range(times)]
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
