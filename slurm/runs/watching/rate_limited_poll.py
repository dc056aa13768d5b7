"""Ask the scheduler rarely, and remember its answers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable

from slurm.client.queue import UNKNOWN, JobState, poll
from toolkit.errors import SchedulerError

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
