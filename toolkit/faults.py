"""Faults on purpose: what the tests, `stk drill` and the soak do to a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

VARIABLE = "STK_FAULTS"


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults that await this process."""

    rank: int
    attempt: int

    @classmethod
    def from_environment(
        cls, rank: int, attempt: int, environ: Mapping[str, str] = os.environ
    ) -> Faults | None:
        """What STK_FAULTS asks of this rank in this attempt; None where it asks nothing."""
        return None if not environ.get(VARIABLE) else cls(rank, attempt)

    def at(self, point: str, step: int) -> None:
        """Strike, if a fault is due at this point."""
