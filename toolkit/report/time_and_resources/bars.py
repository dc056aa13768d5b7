"""A time line of attempts for a terminal of any width, with or without colour."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from toolkit.report import formats
from toolkit.report.time_and_resources.times import BY_NAME, TIME_PARTS
from toolkit.run.attempts.resource_hours import AttemptUsage

_ATTEMPTS = 15
_LEAST_CELLS = 10
#: Cells that a row needs besides its bar.
_BESIDE = 9


def time_line(attempts: Sequence[AttemptUsage], width: int) -> Table:
    """Return one bar for each attempt, all on one axis from the first submission to the last end.

    attempts  at least one; if there are many, the last ones are shown
    """
    shown = attempts[-_ATTEMPTS:]
    first = shown[0].time.begin
    grid = Table.grid(padding=(0, 2))
    grid.title, grid.title_justify = Text("Time line", style="bold"), "left"
    grid.add_column(justify="right")
    grid.add_column(no_wrap=True)
    begin = min((span.begin for attempt in shown for span in attempt.time.spans()), default=first)
    end = max([first, *(attempt.time.end for attempt in shown)])
    cells = max(_LEAST_CELLS, min(width - _BESIDE, 100))
    for attempt in shown:
        grid.add_row(Text(f"{attempt.time.attempt}"), bar(attempt, begin, end, cells))
    grid.add_row("", Text(f"0{formats.duration(end - begin):>{cells - 1}}", style="dim"))
    grid.add_row("", legend(shown))
    if len(shown) < len(attempts):
        grid.add_row("", Text(f"the last {len(shown)} of {len(attempts)} attempts", style="dim"))
    return grid


def bar(attempt: AttemptUsage, begin: float, end: float, cells: int) -> Text:
    """Return an attempt's bar: each cell shows the part that took most of its time."""
    width = (end - begin) / cells or 1.0
    time_of: list[dict[str, float]] = [{} for _ in range(cells)]
    for span in attempt.time.spans():
        first, last = (min(cells - 1, max(0, int((at - begin) / width))) for at in (span.begin, span.end))
        for cell in range(first, last + 1):
            left, right = begin + cell * width, begin + (cell + 1) * width
            # The last cell may begin where the span ends.
            if (inside := min(span.end, right) - max(span.begin, left)) <= 0:
                continue
            time_of[cell][span.kind] = time_of[cell].get(span.kind, 0.0) + inside
    line = Text()
    for times in time_of:
        part = BY_NAME[max(times, key=lambda name: times[name])] if times else BY_NAME["away"]
        line.append(part.mark, style=part.style)
    return line


def legend(attempts: Sequence[AttemptUsage]) -> Text:
    """Return the marks of the parts that these attempts have."""
    found = {span.kind for attempt in attempts for span in attempt.time.spans()}
    words = Text(overflow="fold")
    for part in TIME_PARTS:
        if part.name in found and part.name != "away":
            words.append(f"{part.mark} ", style=part.style)
            words.append(f"{part.name}  ")
    return words
