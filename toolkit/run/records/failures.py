"""failure.json as a value: the first failure of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolkit.run.records.from_json import KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRecord:
    """The first failure, its place and advice; None for what is unknown.

    error   the failure class (toolkit.run.failure.classes)
    step    completed steps
    """

    time: float | None = None
    rank: int | None = None
    host: str | None = None
    phase: str | None = None
    step: int | None = None
    error: str = field(default="", metadata={KEY: "class"})
    message: str = ""
    advice: str = ""
    traceback: str = ""

    @property
    def summary(self) -> str:
        """Rank, host and the first line of the message."""
        first, _, _ = self.message.partition("\n")
        return f"rank {self.rank} on {self.host}: {first}"
