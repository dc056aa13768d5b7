"""Runs to be set side by side: one that cannot be read is named, and the others stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.errors import StkError
from toolkit.report.formats import clean
from toolkit.report.summary import summarize
from toolkit.report.values import RunSummary
from toolkit.rundir import RunDir

#: What files that hold something else than a run writes can lead to.
_DAMAGES = (StkError, OSError, ValueError, TypeError, LookupError, AttributeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Several runs.

    runs        those that can be read, in the order in which they were named
    unreadable  the others by their ids, with what is wrong
    """

    runs: tuple[RunSummary, ...]
    unreadable: dict[str, str]


def compare(folders: Sequence[RunDir]) -> Compared:
    """Read the folders of several runs. Raises nothing for a damaged one."""
    runs, unreadable = [], {}
    for folder in folders:
        try:
            runs.append(summarize(folder))
        except _DAMAGES as error:
            unreadable[clean(folder.run_id)] = clean(str(error) or type(error).__name__)
    return Compared(runs=tuple(runs), unreadable=unreadable)
