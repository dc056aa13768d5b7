"""The results of a sweep as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolkit.report.blocks import Numbers
from toolkit.report.formats import NOTHING, clean, duration, short_names
from toolkit.sweeps.results.collect import SEED, Group, Result, Results, meant

if TYPE_CHECKING:
    # rich takes long to import, and the report of a job does not need it.
    from rich.console import RenderableType
    from rich.text import Text

#: Rows in the terminal; the files hold all.
_MOST_ROWS = 20


def run_head(results: Results) -> list[str]:
    """Titles of the table of runs."""
    return ["", *results.keys, results.metric, "run", "state", "time"]


def run_row(results: Results, place: int, row: Result) -> list[str]:
    """Cells of one run, for people."""
    return [
        str(place) if row.value is not None else "",
        *(compact(row.values.get(key, NOTHING)) for key in results.keys),
        results.score(row.value),
        row.run_id,
        row.state,
        duration(row.seconds),
    ]


def group_head(results: Results) -> list[str]:
    """Titles of the table of groups."""
    return ["", *_group_keys(results), results.metric, "seeds"]


def group_row(results: Results, place: int, group: Group) -> list[str]:
    """Cells of one group: mean ± sample standard deviation over the seeds."""
    spread = "" if group.sd is None else f" ± {results.score(group.sd)}"
    mean = results.score(group.mean)
    values = [compact(group.values.get(key, NOTHING)) for key in _group_keys(results)]
    return [str(place), *values, f"{mean}{spread}", str(group.runs)]


def _group_keys(results: Results) -> list[str]:
    return [key for key in results.keys if key != SEED]


def told_best(results: Results) -> str:
    """The best run in a sentence."""
    best = results.best
    if best is None:
        return results.why_no_best
    values = ", ".join(f"{key} {value}" for key, value in best.values.items())
    among = f"the best of the sweep ({results.finished})"
    return f"{best.run_id}: {results.metric} {results.score(best.value)}, {among}: {values}"


def drawn(results: Results) -> RenderableType:
    """Return the same to be printed: groups if there are any, runs, and the best run in a sentence."""
    from rich.console import Group as Lines
    from rich.text import Text

    parts: list[RenderableType] = []
    if results.groups:
        groups = [group_row(results, place, each) for place, each in enumerate(results.groups, 1)]
        parts += [_in_terminal(results, group_head(results), groups), Text()]
    head = ["", *results.keys, results.metric, "run"]
    runs = []
    for place, each in enumerate(results.rows, 1):
        *cells, value, run_id, state, _ = run_row(results, place, each)
        # If there is no value, the state shows why.
        runs.append([*cells, value if each.value is not None else state, run_id])
    parts.append(_in_terminal(results, head, runs))
    if len(runs) > _MOST_ROWS:
        parts.append(Text(f"… and {len(runs) - _MOST_ROWS} more, in runs.csv", style="bright_black"))
    return Lines(*parts, Text(), Text(told_best(results)))


def _in_terminal(results: Results, head: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    titles = [results.metric_name if title == results.metric else title for title in head]
    return terminal_table(titles, results.keys, rows[:_MOST_ROWS])


def terminal_table(
    titles: Sequence[str], keys: Sequence[str], rows: Sequence[Sequence[str | Text]]
) -> RenderableType:
    """A table for the terminal. In a narrow one, keys and their values are shortened first."""
    from rich.table import Table
    from rich.text import Text

    short = short_names(keys)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in titles:
        is_key = title in short
        table.add_column(
            Text(clean(short.get(title, title))),
            no_wrap=not is_key,
            overflow="ellipsis",
            min_width=4 if is_key else None,
        )
    for row in rows:
        cells = [Text(clean(cell)) if isinstance(cell, str) else cell for cell in row]
        table.add_row(*cells)
    return table


def compact(value: str) -> str:
    """A value without the spaces at which a terminal would wrap it."""
    return value.replace(", ", ",")


def numbers(results: Results) -> Numbers:
    """All runs, numbers in full."""
    head = ["run_id", "state", *results.keys, results.metric, "step", "seconds"]
    rows: list[list[object]] = []
    for row in results.rows:
        values = (_cell(row.values.get(key, "")) for key in results.keys)
        rows.append([row.run_id, row.state, *values, row.value, row.step, row.seconds])
    return Numbers(name="runs", head=head, rows=rows)


def _cell(text: str) -> str:
    """The value of a key in a spreadsheet: a text without its quotes."""
    return found if isinstance(found := meant(text), str) else text
