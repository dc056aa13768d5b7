"""A progress bar on the terminal, which is removed at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from toolkit.training.output.progress_display import is_on_terminal


@contextmanager
def progress_bar(
    what: str, total: int | None, count: str = "{task.percentage:3.0f} %", *, is_shown: bool = True
) -> Iterator[Callable[..., None]]:
    """Show a bar on standard error if that is a terminal; yield rich's `Progress.update` of its task.

    count  text after the bar, a template of rich; the task has the field `lines`
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(None), TextColumn(count))
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    is_hidden = not (is_shown and is_on_terminal(console))
    with Progress(
        *columns, *times, console=console, transient=True, disable=is_hidden, expand=True
    ) as progress:
        yield partial(progress.update, progress.add_task(what, total=total, lines=0))
