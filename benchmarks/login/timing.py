"""The cost of a command: wall time, and CPU time of it and of everything that it starts."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from benchmarks.measuring.rounds import Process


def taken(command: Sequence[str], variables: Mapping[str, str]) -> dict[str, float]:
    """Seconds of one command, `wall_s` and `cpu_s`. No other child of this process may end meanwhile.

    Raises ChildFailed.
    """
    used, started = _cpu_s(), time.perf_counter()
    Process(command, variables).finish()
    return {"wall_s": time.perf_counter() - started, "cpu_s": _cpu_s() - used}


def median_of(measure: Callable[[], dict[str, float]], times: int) -> dict[str, float]:
    """The median of each figure over so many measurements: one round of what takes a moment only."""
    found = [measure() for _ in range(times)]
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
