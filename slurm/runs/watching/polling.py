"""Looking at runs again and again, gently: the scheduler is asked rarely, and requeued jobs may start."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence

from slurm.client.queue import UNKNOWN, JobState, poll
from slurm.job.release_requeued import Releaser
from slurm.status.rows import RunStatus, status
from toolkit.errors import SchedulerError
from toolkit.run.run_dir import RunDir

#: Seconds for each question: two of them a minute.
PER_QUESTION_S = 30.0

#: Of a job that was submitted since the last question.
_NOT_ASKED = JobState(state="pending", reason="Slurm has not been asked about it yet")


class RateLimitedPoll:
    """Like `poll`, with two questions to the scheduler a minute, however many jobs and calls.

    In between it repeats the last answers. It never asks again about a job that has ended. Accounting is a
    second question: after a round that may have needed it, the next one comes a minute later.

    is_fresh  whether the last call has asked
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = -math.inf
        self._known: dict[str, JobState] = {}
        self._trouble: SchedulerError | None = None
        self.is_fresh = False

    def __call__(self, ids: Iterable[str]) -> dict[str, JobState]:
        """Return the states of these jobs, as far as known. Raises SchedulerError like the last question."""
        wanted = list(ids)
        open_ids = [key for key in wanted if not self._has_ended(key)]
        self.is_fresh = bool(open_ids) and self._clock() >= self._due
        if self.is_fresh:
            self._ask(open_ids)
        if self._trouble is not None and open_ids:
            raise self._trouble
        return {key: self._known.get(key, _NOT_ASKED) for key in wanted}

    def _has_ended(self, key: str) -> bool:
        return key in self._known and self._known[key].is_terminal

    def _ask(self, ids: list[str]) -> None:
        self._trouble = None
        # As long as nothing better is known, and also if it fails.
        questions = 2
        try:
            found = poll(ids)
            self._known.update(found)
            is_short = not any(job.is_terminal or job == UNKNOWN for job in found.values())
            questions = 1 if is_short else 2
        except SchedulerError as error:
            self._trouble = error
        finally:
            self._due = self._clock() + PER_QUESTION_S * questions


class RunPoller:
    """States of runs, round after round: their folders each time, the scheduler twice a minute."""

    def __init__(self) -> None:
        self._ask = RateLimitedPoll()
        self._releaser = Releaser()

    def look(self, runs: Sequence[RunDir]) -> list[RunStatus]:
        """Return the states of these runs now. A run that waits only for its begin time is released."""
        rows = status(runs, self._ask)
        if self._ask.is_fresh:
            # Only then: an answer of half a minute ago is not a reason to act on a job.
            for row in rows:
                self._releaser.release(row)
        return rows

    def look_at(self, run: RunDir, runs: Iterable[RunDir]) -> RunStatus:
        """Return the state of one run now. The others are read too, so that they are released."""
        return self.look([run, *(each for each in runs if each != run)])[0]
