"""The preview of a sweep's runs before they are submitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Group
from rich.text import Text

from slurm.sweeps.candidates import Candidate
from slurm.sweeps.request import Wanted
from toolkit.sweeps.results.tables import compact, terminal_table
from toolkit.system.output.amounts import counted

#: Largest number of rows of a preview: a thousand would take a second to draw.
_MOST_ROWS = 40


def preview(wanted: Wanted) -> Group:
    """Return a line for each combination, for rich: its values, its run, and the planned action."""
    keys = list(dict.fromkeys(key for each in wanted.combinations for key in each.values))
    rows = list(_rows(wanted, keys))
    table = terminal_table([*keys, "run", ""], keys, rows)
    hidden = len(wanted.combinations) + len(wanted.removed) - len(rows)
    more = [Text(f"… and {hidden} more", style="bright_black")] if hidden > 0 else []
    return Group(table, *more, Text(summary(wanted)))


def _rows(wanted: Wanted, keys: list[str]) -> Iterator[list[str | Text]]:
    by_id = {one.run.run_id: one for one in wanted.known}
    seen: set[str] = set()
    for each in wanted.combinations[:_MOST_ROWS]:
        change = Text("the same run as above") if each.run_id in seen else _change(by_id[each.run_id])
        seen.add(each.run_id)
        yield [*(compact(each.values.get(key, "")) for key in keys), each.run_id, change]
    values_of = {each.run_id: each.values for each in wanted.record.removed}
    for row in wanted.removed[: max(0, _MOST_ROWS - len(wanted.combinations))]:
        values = values_of[row.run_id]
        change = Text(f"removed: {row.state}", style="red")
        yield [*(compact(values.get(key, "")) for key in keys), row.run_id, change]


def _change(one: Candidate) -> Text:
    if one.now is None:
        return Text("new", style="green")
    if one.skipped:
        return Text(f"left out: {one.skipped}", style="bright_black")
    return Text(f"goes on ({one.now.state})", style="yellow")


def summary(wanted: Wanted) -> str:
    """Return the number of runs for each planned action, on one line."""
    known = [(one.now.state, one.skipped) for one in wanted.known if one.now is not None]
    groups = {
        "unchanged": [state for state, skipped in known if skipped],
        "go on": [state for state, skipped in known if not skipped],
        "removed": [row.state for row in wanted.removed],
    }
    parts = [f"{len(wanted.known) - len(known)} new"]
    for word, states in groups.items():
        if states:
            tally = ", ".join(f"{count} {state}" for state, count in sorted(Counter(states).items()))
            parts.append(f"{len(states)} {word} ({tally})")
    return f"sweep {wanted.folder.name}: {counted(len(wanted.known), 'run')}: {', '.join(parts)}"
