"""A failure on a terminal, with colours, and wrapped to its width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from toolkit.run.failure.format import failure_facts


def failure_view(failure: Mapping[str, Any]) -> Group:
    """Return the message above a table of facts. Text from the run is not interpreted as markup."""
    message, facts = failure_facts(failure)
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True, style="bright_black")
    table.add_column()
    for name, text in facts:
        table.add_row(name, Text(text, style="bold" if name == "what to do" else ""))
    return Group(Text.assemble(("error: ", "bold red"), (message, "bold")), Padding(table, (0, 0, 0, 2)))
