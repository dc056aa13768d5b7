"""One run on the cluster: the driver watches it, interrupts it, and returns figures."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from cluster import job, wait_for_the_end
from jobs.settings import STEPS
from tools.tool import Step, Submission, Tool

_TIMEOUT_S = 900.0
#: Actions of a person before giving up.
_PATIENCE = 4


class Hangs(Exception):
    """The run made no progress for so long that the driver gave up."""


class Story:
    """One run of one tool, and what the driver did to it."""

    def __init__(self, tool: Tool, submission: Submission) -> None:
        self.tool = tool
        self.submission = submission
        self.folder = submission.folder
        self.job_id = ""
        self.struck_at: float | None = None
        self.states: list[str] = []
        self.by_hand: list[str] = []
        self._seen: dict[tuple[str, int], Step] = {}

    # ---- what the driver does

    def submit(self) -> None:
        """Submit the run, or submit it again."""
        self.job_id = self.tool.submit(self.submission)

    def strikes_now(self) -> None:
        """Note when the fault struck."""
        self.struck_at = time.time()

    def follow(self) -> None:
        """Watch the job, and the jobs that continue the run, until they have ended."""
        followed = ""
        while followed != self.job_id:
            followed = self.job_id
            self.states.append(wait_for_the_end(followed, _TIMEOUT_S, self.look))
            self.look()
            self.job_id = self.tool.current_job(self.folder, followed)

    def help(self) -> None:
        """Act as a person would if the run has not finished: submit it again, at most _PATIENCE actions."""
        while not self.has_finished() and len(self.by_hand) < _PATIENCE:
            best = max((step.step for step in self.steps()), default=0)
            self._by_hand("submitted again", self.submit)
            self.follow()
            if not self.has_finished() and max((step.step for step in self.steps()), default=0) <= best:
                self._by_hand("removed the newest checkpoint", lambda: self.tool.drop_newest(self.folder))

    def _by_hand(self, what: str, act: Callable[[], None]) -> None:
        self.by_hand.append(what)
        act()

    # ---- what the driver sees

    def look(self) -> None:
        """Remember the steps that the run has recorded: a tool may drop some of them later."""
        for step in self.tool.steps(self.folder):
            self._seen.setdefault((step.start, step.step), step)

    def steps(self) -> list[Step]:
        """Return all steps that were seen, ordered by time."""
        return sorted(self._seen.values(), key=lambda step: step.time)

    def ranks(self) -> dict[int, int]:
        return self.tool.ranks(self.folder)

    def has_finished(self) -> bool:
        return self.tool.digest(self.folder) is not None

    def wait_for_step(self, number: int) -> None:
        """Wait until step `number` is done. Raises Hangs."""

        def is_there() -> bool:
            self.look()
            return any(step.step >= number for step in self._seen.values())

        self.wait_until(is_there, _TIMEOUT_S)

    def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise Hangs(f"{self.tool.name}, job {self.job_id}: {job(self.job_id)}")
            time.sleep(0.1)

    # ---- results

    def figures(self) -> dict[str, Any]:
        """Return the figures of the run; README.md explains them."""
        steps = self.steps()
        return {
            "came_back_by_itself": self.has_finished() and not self.by_hand,
            "finished": self.has_finished(),
            "states": self.states,
            "by_hand": self.by_hand,
            "lost_steps": len(steps) - len({step.step for step in steps}),
            "starts": len({step.start for step in steps}),
            "seconds_without_new_step": _longest_gap(steps),
            "seconds_after_the_fault": self._after_the_fault(steps),
            "seconds_per_step": _typical_step(steps),
            "last_step": max((step.step for step in steps), default=0),
            "steps": STEPS,
            "sha256": self.tool.digest(self.folder),
            "pieces": _pieces(steps),
        }

    def _after_the_fault(self, steps: list[Step]) -> float | None:
        """Return the seconds from the fault to the first new step of a later start; None without one."""
        if self.struck_at is None:
            return None
        first_start = steps[0].start
        best = max(step.step for step in steps if step.start == first_start)
        later = (step.time for step in steps if step.start != first_start and step.step > best)
        first = next(later, None)
        return None if first is None else round(first - self.struck_at, 1)


def _new(steps: list[Step]) -> list[Step]:
    """Return the steps with a higher number than all steps before them."""
    found: list[Step] = []
    for step in steps:
        if not found or step.step > found[-1].step:
            found.append(step)
    return found


def _longest_gap(steps: list[Step]) -> float | None:
    """Return the longest time without a new step, in seconds; None for fewer than two."""
    new = _new(steps)
    gaps = [after.time - before.time for before, after in pairwise(new)]
    return round(max(gaps), 1) if gaps else None


def _typical_step(steps: list[Step]) -> float | None:
    gaps = sorted(
        after.time - before.time for before, after in pairwise(steps) if before.start == after.start
    )
    return round(gaps[len(gaps) // 2], 3) if gaps else None


def _pieces(steps: list[Step]) -> list[list[int]]:
    """Return the first and last step of each start."""
    starts: dict[str, list[int]] = {}
    for step in steps:
        starts.setdefault(step.start, []).append(step.step)
    return [[min(numbers), max(numbers)] for numbers in starts.values()]
