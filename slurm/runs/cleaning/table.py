"""The text output of `stk clean`."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from slurm.runs.cleaning.choosing import Proposal
from toolkit.system.output.amounts import duration, size
from toolkit.system.output.sanitize import clean


def table(proposal: Proposal) -> Group:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", overflow="fold")
    table.add_column("what", overflow="fold")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("age", justify="right", no_wrap=True)
    for item in proposal.items:
        cells = (item.run.run_id, item.what, size(item.bytes), duration(item.age_s))
        table.add_row(*(Text(str(clean(cell))) for cell in cells))
    kept = []
    for each in proposal.kept:
        what = "" if each.what == "all" else f", {each.what}"
        kept.append(Text(str(clean(f"kept: {each.run_id}{what}: {each.why}")), style="bright_black"))
    return Group(table, *kept) if proposal.items else Group(*kept)
