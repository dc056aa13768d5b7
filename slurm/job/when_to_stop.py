"""When a run must leave its job: before the job's end, and on a warning that means more than that.

Rank 0 watches the job's end, because a warning may be missing or late. It queries the controller in a
thread, so that training never waits for an answer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from slurm.client import programs
from slurm.client.stop_reason import (
    TIME_LIMIT,
    WARNING,
    StopEvidence,
    classify_stop,
    end_of,
    job_target,
    length_s,
    restarts_before,
    told_end,
)
from slurm.job.save_budget import Budget, budgets_of_job, too_short
from slurm.status.submissions import last_resources
from slurm.submission.batch.job_options import signal_lead_s
from toolkit.errors import StkError
from toolkit.run.events import note_event, read_events
from toolkit.run.run_dir import RunDir

#: Seconds to wait for the controller's answer before a warning counts as a stop request.
_PATIENCE_S = 5.0
_ASK_AGAIN_S = 60.0
#: Seconds for exiting and requeueing, besides one step and a save.
_LEAVE_S = 20.0

#: Event: `stk requeue` requested a stop.
REQUEST_EVENT = "requeue_requested"

log = logging.getLogger("toolkit.slurm")


@dataclass(frozen=True, slots=True)
class _Answer:
    """The controller's answer about the job, queried at `time`."""

    time: float
    job: Mapping[str, str]
    requested: bool


class JobWatch:
    """Slurm's answers about this job, for rank 0. Every method returns at once."""

    def __init__(self, run: RunDir, environ: Mapping[str, str]) -> None:
        self._run = run
        self._job = job_target(environ)
        self._restart = restarts_before(environ)
        self.signal_s = 0
        self._end = told_end(environ)
        self._answer: _Answer | None = None
        self._budgets: list[Budget] | None = None
        self._near_since: float | None = None
        self._asked = 0.0
        self._thread: threading.Thread | None = None
        self._requests = count_requests(run)
        self.ask()

    @property
    def is_requested(self) -> bool:
        """Whether `stk requeue` was called since this attempt began."""
        return count_requests(self._run) > self._requests

    def ask(self) -> None:
        """Query the controller in a thread, unless a query is running."""
        if self._thread is None or not self._thread.is_alive():
            self._asked = time.time()
            self._thread = threading.Thread(target=self._ask, daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait for the end of a running query."""
        if self._thread is not None:
            self._thread.join()

    def _ask(self) -> None:
        asked = time.time()
        try:
            job = programs.show_job(self._job, timeout_s=10)
            self.signal_s = self.signal_s or signal_lead_s(last_resources(self._run))
            self._answer = _Answer(asked, job, self.is_requested)
            if self._budgets is None:
                self._budgets = budgets_of_job(job)
        except (StkError, OSError) as error:
            log.warning("Slurm cannot be asked about job %s: %s", self._job, str(error).partition("\n")[0])

    def reason_to_stop(self, lead_s: float, warned: float | None) -> str | None:
        """Return why to stop now, or None; `warned` is the time of Slurm's warning, if it came."""
        now = time.time()
        if warned is not None and self._has_another_reason(warned, now):
            return WARNING
        return TIME_LIMIT if self._is_near(lead_s, now) else None

    def _has_another_reason(self, warned: float, now: float) -> bool:
        """Whether a warning has another reason than the time limit, which is watched anyway.

        With `preempt_send_user_signal` it announces a preemption; `stk requeue` sends it too. True if no
        controller answers.
        """
        answer = self._answer
        if answer is None or answer.time < warned:
            self.ask()
            return now - warned > _PATIENCE_S
        seen = StopEvidence(
            reason=WARNING, restart=self._restart, signal_s=self.signal_s, requested=answer.requested
        )
        return classify_stop(answer.job, seen, warned) != TIME_LIMIT

    def _is_near(self, lead_s: float, now: float) -> bool:
        """Whether the job's end is near, by a current answer, because a limit may have been raised."""
        answer = self._answer
        if answer is None and now - self._asked > _ASK_AGAIN_S:
            self.ask()
        end = self._end if answer is None else end_of(answer.job, self._end)
        length = None if answer is None else length_s(answer.job)
        if end is None or end - now > margin_s(lead_s, length):
            self._near_since = None
            return False
        if self._near_since is None:
            self._near_since = now
        if answer is not None and answer.time >= self._near_since:
            return True
        self.ask()
        return now - self._near_since > _PATIENCE_S

    def check_budgets(self, lead_s: float) -> None:
        """Report once if the job or a preemption leaves less time than a step and a save take here."""
        if short := too_short(lead_s, self._budgets or ()):
            self._budgets = []
            for line in short:
                log.warning("%s", line)
            note_event(self._run, "budget_too_short", lead_s=round(lead_s, 3), reasons=short)


def margin_s(lead_s: float, length_s: float | None) -> float:
    """Return the seconds before the job's end at which to stop: two steps with saves, and the time to exit.

    For a short job it is less, at most half of its time; otherwise the job would never train.
    """
    if length_s is None:
        return 2 * lead_s + _LEAVE_S
    return min(2 * lead_s + min(_LEAVE_S, length_s / 10), length_s / 2)


def count_requests(run: RunDir) -> int:
    """Return how often `stk requeue` requested a stop; unlike times, a count needs no equal clocks."""
    return len(list(read_events(run, REQUEST_EVENT)))
