"""How the parts of a run's time are shown: their order, titles and colours."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.report.plotting.themes import Theme


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePart:
    """One part of a run's time.

    name    field of toolkit.run.attempts.goodput.Goodput
    title   for people
    mark    a cell of a bar in a terminal, distinct without colour, too
    style   its colour in a terminal
    """

    name: str
    title: str
    mark: str
    style: str


#: In the order of an attempt.
TIME_PARTS = (
    TimePart(name="away", title="away", mark=" ", style="dim"),
    TimePart(name="waiting", title="waiting", mark="·", style="bright_black"),
    TimePart(name="starting", title="starting", mark="▒", style="yellow"),
    TimePart(name="training", title="training", mark="█", style="green"),
    TimePart(name="repeated", title="repeated", mark="╳", style="red"),
    TimePart(name="saving", title="saving", mark="▪", style="cyan"),
)
BY_NAME = {part.name: part for part in TIME_PARTS}


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
