"""The end of an attempt that did not fail."""

from __future__ import annotations

from enum import Enum


class Outcome(Enum):
    """Finished, or stopped early on request."""

    FINISHED = "finished"
    YIELDED = "yielded"

    @property
    def is_finished(self) -> bool:
        return self is Outcome.FINISHED
