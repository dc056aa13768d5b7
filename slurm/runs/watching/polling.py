"""Poll the states of runs with few queries to Slurm, and release requeued jobs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence

from slurm.client.queue import UNKNOWN, JobState, poll
from slurm.job.release_requeued import Releaser
from slurm.status.rows import RunStatus, status
from toolkit.errors import SchedulerError
from toolkit.run.run_dir import RunDir

#: Seconds for each query: at most two a minute.
PER_QUESTION_S = 30.0

#: State of a job that was submitted after the last query.
_NOT_ASKED = JobState(state="pending", reason="Slurm has not been asked about it yet")


class RateLimitedPoll:
    """Like `poll`, but with at most two queries of Slurm a minute for any number of jobs and calls.

    In between it repeats the last answers. It never queries again for a job that has ended. Accounting counts
    as a second query: after a call that may have used it, the next one is a minute later.

    is_fresh  whether the last call has queried Slurm
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = -math.inf
        self._known: dict[str, JobState] = {}
        self._trouble: SchedulerError | None = None
        self.is_fresh = False

    def __call__(self, ids: Iterable[str]) -> dict[str, JobState]:
        """Return the known states of these jobs. Raises the SchedulerError of the last query."""
        wanted = list(ids)
        open_ids = [key for key in wanted if key not in self._known or not self._known[key].is_terminal]
        self.is_fresh = bool(open_ids) and self._clock() >= self._due
        if self.is_fresh:
            self._ask(open_ids)
        if self._trouble is not None and open_ids:
            raise self._trouble
        return {key: self._known.get(key, _NOT_ASKED) for key in wanted}

    def _ask(self, ids: list[str]) -> None:
        self._trouble = None
        # The assumption until the answer is known, and for a failed query.
        questions = 2
        try:
            found = poll(ids)
            self._known.update(found)
            if not any(job.is_terminal or job == UNKNOWN for job in found.values()):
                questions = 1
        except SchedulerError as error:
            self._trouble = error
        finally:
            self._due = self._clock() + PER_QUESTION_S * questions


class RunPoller:
    """Polls the states of runs: reads their folders each time, queries Slurm at most twice a minute."""

    def __init__(self) -> None:
        self._ask = RateLimitedPoll()
        self._releaser = Releaser()

    def look(self, runs: Sequence[RunDir]) -> list[RunStatus]:
        """Return the current states of these runs; release runs that only wait for their begin time."""
        rows = status(runs, self._ask)
        if self._ask.is_fresh:
            # Not on a repeated answer, which may be half a minute old.
            for row in rows:
                self._releaser.release(row)
        return rows

    def look_at(self, run: RunDir, runs: Iterable[RunDir]) -> RunStatus:
        """Return the current state of one run. The others are read too, so that they are released."""
        return self.look([run, *(each for each in runs if each != run)])[0]
