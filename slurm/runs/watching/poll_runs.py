"""Looking at runs again and again, gently, and letting requeued ones start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slurm.job.release_requeued import Releaser
from slurm.runs.watching.rate_limited_poll import RateLimitedPoll
from slurm.status.rows import RunStatus, status
from toolkit.run.run_dir import RunDir


class RunPoller:
    """States of runs, round after round: their folders each time, the scheduler twice a minute."""

    def __init__(self) -> None:
        self._ask = RateLimitedPoll()
        self._releaser = Releaser()

    def look(self, runs: Sequence[RunDir]) -> list[RunStatus]:
        """Return the states of these runs now. A run that waits only for its begin time is released."""
        rows = status(runs, self._ask)
        if self._ask.is_fresh:
            # Only then: what was true half a minute ago is no reason to touch a job.
            for row in rows:
                self._releaser.release(row)
        return rows

    def look_at(self, run: RunDir, runs: Iterable[RunDir]) -> RunStatus:
        """Return the state of one run now. The others are read too, so that they are released."""
        return self.look([run, *(each for each in runs if each != run)])[0]
