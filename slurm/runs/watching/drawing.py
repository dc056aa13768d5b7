"""Draw numbers as characters: curves, timelines and bars; cut lines to a width. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from statistics import fmean

from rich.text import Text

from toolkit.run.attempts.goodput import Span

#: Keys and their actions.
Keys = Sequence[tuple[str, str]]

_LEVELS = "▁▂▃▄▅▆▇█"

#: Characters and colours of spans: distinguishable without colours, too.
SPANS: dict[str, tuple[str, str]] = {
    "waiting": ("·", "bright_black"),
    "starting": ("▒", "yellow"),
    "training": ("█", "green"),
    "repeated": ("▚", "red"),
    "finishing": ("░", "magenta"),
    "away": (" ", ""),
}
SAVE = ("◆", "cyan")


def sparkline(values: Sequence[float], width: int, top: float | None = None) -> str:
    """Return values as bars; several values in one place are averaged.

    top  value of a full bar, if an empty bar is 0; None: bars range from the least to the largest value
    """
    if not values or width < 1:
        return ""
    count = min(width, len(values))
    edges = [len(values) * number // count for number in range(count + 1)]
    cells = [fmean(values[begin:end]) for begin, end in pairwise(edges)]
    low, high = (min(cells), max(cells)) if top is None else (0.0, top)
    # Divided first: the inverse of a very small range is infinite.
    shares = ((value - low) / (high - low) if high > low else 0.0 for value in cells)
    return "".join(_LEVELS[round((len(_LEVELS) - 1) * max(0.0, min(1.0, share)))] for share in shares)


def stretched(values: Sequence[float], width: int) -> Sequence[float]:
    """Return values repeated to fill a width; unchanged if there are already enough."""
    if not values or len(values) >= width:
        return values
    return [values[number * len(values) // width] for number in range(width)]


def timeline(spans: Sequence[Span], saves: Sequence[float], width: int) -> Text:
    """Return spans over the whole width; each place shows its main kind, or the mark of a save."""
    if not spans or width < 1:
        return Text()
    begin, end = spans[0].begin, max(span.end for span in spans)
    step = (end - begin) / width
    marks = {min(width - 1, int((save - begin) / step)) for save in saves if begin <= save <= end}
    cells = [_kind(spans, begin + number * step, begin + (number + 1) * step) for number in range(width)]
    drawn = [SAVE if number in marks else SPANS[kind] for number, kind in enumerate(cells)]
    return Text.assemble(*((glyph * len(list(run)), style) for (glyph, style), run in groupby(drawn)))


def _kind(spans: Sequence[Span], begin: float, end: float) -> str:
    return max(spans, key=lambda span: min(span.end, end) - max(span.begin, begin)).kind


def bar(share: float, width: int) -> Text:
    """Return a share from 0 to 1 as a bar."""
    full = round(max(0.0, min(1.0, share)) * width)
    return Text.assemble(("━" * full, "green"), ("─" * (width - full), "bright_black"))


def key_line(keys: Keys) -> Text:
    return Text("   ").join(Text.assemble((key, "bold reverse"), f" {words}") for key, words in keys)


def cut(line: Text, width: int) -> Text:
    line = line.copy()
    line.truncate(width, overflow="ellipsis")
    line.no_wrap = True
    return line
