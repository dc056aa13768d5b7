"""A finding: a fact, what follows for a job, and what to set."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    """Fine as it is."""
    NOTE = "note"
    """Good to know; nothing has to change."""
    CHANGE = "change"
    """Something in the experiment file or the environment should be set differently."""
    PROBLEM = "problem"
    """Something will not work."""


OK, NOTE, CHANGE, PROBLEM = Level.OK, Level.NOTE, Level.CHANGE, Level.PROBLEM


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    found    the fact
    follows  what it means for a job; may be empty
    key      the key of the experiment, or the variable, to set; may be empty
    """

    level: Level
    found: str
    follows: str = ""
    key: str = ""
