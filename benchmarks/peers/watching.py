"""Watch a run on the cluster, its steps and its job; submit it again as a person would."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from accounts import Traces
from cluster import ENDED, command, job
from faults import is_alive
from story import Story
from tools.tool import Submission, Tool

_PERIOD_S = 0.25
#: A job that is being requeued has an ended state for a moment.
_REQUEUE_S = 4.0


class Watched:
    """One run of one tool.

    person_s  seconds after which a person would submit a run again that ended early
    """

    def __init__(self, tool: Tool, folder: Path, partition: str, step_ms: int, person_s: float) -> None:
        folder.mkdir(parents=True)
        self._person_s = person_s
        self._step_s = step_ms / 1000
        self._gone: list[float] = []
        self._ended: float | None = None
        self._is_running = False
        self.by_hand: list[tuple[float, float]] = []
        submission = Submission(folder=folder, partition=partition, minutes=30, step_ms=step_ms)
        self.story = Story(tool, submission)
        self.story.submit()

    def watch(self, until: Callable[[], bool], limit: float) -> None:
        """Look repeatedly until the condition holds or the time `limit` has come."""
        while not until() and time.time() < limit:
            self.look()
            time.sleep(_PERIOD_S)

    def look(self) -> None:
        story = self.story
        story.look()
        story.tool.starts(story.folder)
        with suppress(RuntimeError):
            story.job_id = story.tool.current_job(story.folder, story.job_id)
            self._judge(job(story.job_id)["JobState"])

    def _judge(self, state: str) -> None:
        now = time.time()
        if self._is_running and state not in ("RUNNING", "SIGNALING"):
            self._gone.append(now)
        self._is_running = state in ("RUNNING", "SIGNALING")
        if state not in ENDED or self.story.has_finished():
            self._ended = None
        elif self._ended is None:
            self._ended = now
        elif now - self._ended > max(_REQUEUE_S, self._person_s):
            self._ended = None
            self.story.submit()
            self.by_hand.append((now, time.time()))

    @property
    def has_finished(self) -> bool:
        return self.story.has_finished()

    @property
    def last_step(self) -> int:
        return max((step.step for step in self.story.steps()), default=0)

    def kill_a_rank(self) -> bool:
        """Send SIGKILL to the rank with the highest number; return False if it is not alive."""
        ranks = self.story.ranks()
        pid = ranks.get(max(ranks, default=0), 0)
        if not pid or not is_alive(pid):
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return True

    def end(self) -> None:
        """Cancel the current job and wait for its end."""
        with suppress(RuntimeError):
            command("scancel", self.story.job_id)
            while job(self.story.job_id)["JobState"] not in ENDED:
                time.sleep(_PERIOD_S)

    def traces(self, until: float) -> Traces:
        story = self.story
        file = story.folder / "launches"
        return Traces(
            starts=story.tool.starts(story.folder),
            steps=story.steps(),
            launches=[float(line) for line in file.read_text().split()] if file.exists() else [],
            gone=self._gone,
            by_hand=self.by_hand,
            until=until,
            step_s=self._step_s,
        )
