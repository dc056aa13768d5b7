"""Let requeued jobs start at once, without Slurm's delay of two minutes."""

from __future__ import annotations

import math
import time

from slurm.client import programs
from slurm.status.rows import RunStatus
from toolkit.errors import SchedulerError

#: Seconds until a release is repeated. Each release moves the start time, so it must not be repeated earlier.
_AGAIN_S = 4 * programs.RELEASE_DELAY_S


def waits_for_begin_time(now: RunStatus) -> bool:
    """Whether a requeued job only waits for its begin time, which Slurm sets two minutes after a requeue.

    Other jobs wait for the begin time that their user has chosen.
    """
    return now.state == "requeued" and now.reason.partition(";")[0] == "BeginTime"


class Releaser:
    """Releases requeued jobs as soon as they wait for their begin time."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, int], float] = {}

    def release(self, row: RunStatus) -> None:
        """Release a requeued job that waits for its begin time, unless that has just been done."""
        if row.job_id is None or not waits_for_begin_time(row):
            return
        start, now = (row.job_id, row.restarts), time.monotonic()
        if now - self._asked.get(start, -_AGAIN_S) < _AGAIN_S:
            return
        try:
            programs.release_now(row.job_id)
            self._asked[start] = now
        except SchedulerError as error:
            # The job may have started, or no controller answers: the next round tries again.
            if "permission denied" in str(error):
                # It is another user's job.
                self._asked[start] = math.inf
