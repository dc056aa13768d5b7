"""A failure on a terminal of any width; what comes from the run is text and no markup."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from slurm.runs.logs.rendering import failure_view
from toolkit.run.failure.records import failure_record


@pytest.mark.parametrize("width", [20, 80, 300])
def test_failure_is_wrapped_to_the_width_of_the_terminal(width: int) -> None:
    record = failure_record(
        "n", "exception", "[bold]no[/] \x1b[31mmarkup " * 20, rank=1, host="[red]w1", phase="data", step=7
    )
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(failure_view(record))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text
    assert text.startswith("error: [bold]no[/]")
    assert "what to do" in text
    assert width < 80 or "rank 1 on [red]w1, in data, after step 7" in text
