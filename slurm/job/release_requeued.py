"""Let requeued jobs start at once, instead of after the two minutes that Slurm makes them wait."""

from __future__ import annotations

import time

from slurm.client import programs
from slurm.status.rows import RunStatus
from toolkit.errors import SchedulerError

#: Asked again after this long: asking moves the start, so it must not happen in every round.
_AGAIN_S = 4 * programs.RELEASE_DELAY_S


def waits_for_begin_time(now: RunStatus) -> bool:
    """Whether a job waits for no more than the two minutes that Slurm makes a requeued one wait."""
    return now.state in ("pending", "requeued") and now.reason == "BeginTime"


class Releaser:
    """Releases requeued jobs, each as soon as it is seen to wait."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, int], float] = {}

    def release(self, row: RunStatus) -> bool:
        """Let a requeued job that waits for its begin time start; return whether that was asked for now."""
        if row.job_id is None or row.state != "requeued" or not waits_for_begin_time(row):
            return False
        start, now = (row.job_id, row.restarts), time.monotonic()
        if now - self._asked.get(start, -_AGAIN_S) < _AGAIN_S:
            return False
        try:
            programs.release_now(row.job_id)
        except SchedulerError:
            # It may have started meanwhile; or no controller answers, and the next round tries again.
            return False
        self._asked[start] = now
        return True
