"""Looking at runs again and again, gently, and letting requeued ones start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slurm.job.release_requeued import Releaser
from slurm.runs.watching.rate_limited_poll import RateLimitedPoll
from slurm.status.rows import RunStatus, status
from toolkit.run.run_dir import RunDir


class RunPoller:
    """Where runs stand, from round to round: their folders each time, the scheduler twice a minute."""

    def __init__(self) -> None:
        self._ask = RateLimitedPoll()
        self._releaser = Releaser()

    def look(self, runs: Sequence[RunDir]) -> list[RunStatus]:
        """Where these runs stand now. One that waits for no more than its begin time is let start."""
        rows = status(runs, self._ask)
        if self._ask.is_fresh:
            # Only then: what was true half a minute ago is no reason to touch a job.
            for row in rows:
                self._releaser.release(row)
        return rows

    def look_at(self, run: RunDir, runs: Iterable[RunDir]) -> RunStatus:
        """Where one run stands now. The others are looked at, too, so that they are let start."""
        return self.look([run, *(each for each in runs if each != run)])[0]
