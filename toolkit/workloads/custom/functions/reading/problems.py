"""Problems in a file of the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem in a file, what to do about it, and the line, counted from 1 (0 for none)."""

    problem: str
    hint: str = ""
    line: int = 0


class Unfit(Exception):
    """A file that cannot be used as a task."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(each.problem for each in problems))
