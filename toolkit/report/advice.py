"""Advice on the next request: a figure, its bound, and the key to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.report.blocks import Table, table

NO_ADVICE = "Nothing to change: what was asked for fits what was used."


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One thing to change.

    topic   what it is about: memory, CPUs, GPUs, time limit, …
    found   the figure, with its unit
    bound   the limit from which on it is mentioned
    change  what to set, as it is written on the command line; or what to look at
    reason  what is gained
    """

    topic: str
    found: str
    bound: str
    change: str
    reason: str


def advice_table(advice: Sequence[Advice]) -> Table:
    """Return one row for each thing to change."""
    rows = [(each.topic, each.found, each.bound, each.change, each.reason) for each in advice]
    return table("Advice", ["about", "found", "bound", "change", "why"], rows, texts=5)
