"""The runs of a sweep, for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from slurm.sweeps.combinations import Combination
from slurm.sweeps.sweep import Candidate


def show(combinations: Sequence[Combination], known: Sequence[Candidate]) -> None:
    """Print a line for each combination: its values, its run, and what is done about it."""
    Console().print(table(combinations, known))


def table(combinations: Sequence[Combination], known: Sequence[Candidate]) -> Table:
    """The same, to be printed."""
    by_id = {one.run.run_id: one for one in known}
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in (*combinations[0].values, "run", ""):
        table.add_column(title, no_wrap=True)
    seen: set[str] = set()
    for each in combinations:
        told = "the same run as above" if each.run_id in seen else _tell(by_id[each.run_id])
        seen.add(each.run_id)
        table.add_row(*each.values.values(), each.run_id, told)
    return table


def _tell(one: Candidate) -> str:
    if one.skipped:
        return f"left out: {one.skipped}"
    return f"goes on ({one.now.state})" if one.run.path.exists() else "new"
