"""The parts of a run's time as they are shown: their order, their words, how they are drawn."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.report.themes import Theme


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One part of a run's time.

    name    field of toolkit.attempts.goodput.Goodput
    title   for people
    mark    a cell of a bar in a terminal, which can be told from the others without colour
    style   its colour there
    """

    name: str
    title: str
    mark: str
    style: str


#: In the order in which they happen to a start.
KINDS = (
    Kind(name="away", title="away", mark=" ", style="dim"),
    Kind(name="waiting", title="waiting", mark="·", style="bright_black"),
    Kind(name="starting", title="starting", mark="▒", style="yellow"),
    Kind(name="training", title="training", mark="█", style="green"),
    Kind(name="repeated", title="repeated", mark="╳", style="red"),
    Kind(name="saving", title="saving", mark="▪", style="cyan"),
)
BY_NAME = {kind.name: kind for kind in KINDS}


def colour(name: str, theme: Theme) -> str:
    """Return a part's colour in a plot."""
    _, orange, green, _, yellow, light_blue, _ = theme.series
    known = {
        "training": green,
        "repeated": orange,
        "saving": light_blue,
        "starting": yellow,
        "waiting": theme.quiet,
    }
    return known.get(name, theme.grid)
