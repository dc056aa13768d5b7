"""Advice on the next request: a figure, its bound, and the key to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.report.blocks import Table, table

NO_ADVICE = "Nothing to change."


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One thing to change.

    topic   memory, CPUs, GPUs, time limit, …
    found   the measured figure, with its unit
    bound   the limit beyond which advice is given
    change  the setting to change, as on the command line; or what to look at
    reason  the benefit
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
