"""Progress of training for people: a live bar on a terminal, a line every half minute in a log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as RemainingColumn

from toolkit.run.records.headline import headline

log = logging.getLogger("toolkit")

_LINE_EVERY_S = 30.0
_SHOWN = 2


class Display:
    """Shows the progress of training; this one shows nothing: for all ranks but rank 0."""

    def preparing(self, what: str, done: int, total: int | None) -> None:
        pass

    def start(self, total_steps: int, step: int) -> None:
        pass

    def step(self, step: int, epoch: float, metrics: Mapping[str, float]) -> None:
        pass

    def evaluation(self, split: str, epoch: float, metrics: Mapping[str, float]) -> None:
        # A line must fit a terminal, so it shows only the first metrics, the main ones; the report has all.
        shown = "  ".join(f"{name} {value:.4f}" for name, value in list(metrics.items())[:_SHOWN])
        self.message(f"epoch {epoch:5.2f}  {split:<10}  {shown}")

    def message(self, text: str) -> None:
        pass

    def stop(self) -> None:
        pass


def _print(text: str) -> None:
    print(text, flush=True)


class LogDisplay(Display):
    """Plain lines without control characters, one every half minute.

    show  writes a line
    """

    def __init__(self, show: Callable[[str], None] = _print) -> None:
        self._show = show
        self._total = 0
        self._shown = time.monotonic()

    def preparing(self, what: str, done: int, total: int | None) -> None:
        if self._is_due():
            self.message(f"{what}: {done:,}{'' if total is None else f' of {total:,}'}")

    def start(self, total_steps: int, step: int) -> None:
        self._total = total_steps
        self.message(f"training: step {step} of {total_steps}")

    def step(self, step: int, epoch: float, metrics: Mapping[str, float]) -> None:
        if self._is_due():
            speed = metrics.get("train_samples_per_s", 0.0)
            facts = f"epoch {epoch:.2f}  loss {metrics['train_loss']:.4f}  {speed:.0f} samples/s"
            self.message(f"step {step}/{self._total}  {facts}")

    def message(self, text: str) -> None:
        self._show(text)

    def _is_due(self) -> bool:
        now = time.monotonic()
        if now - self._shown < _LINE_EVERY_S:
            return False
        self._shown = now
        return True


class BarDisplay(Display):
    """A live progress bar, refreshed at most four times a second.

    show  writes a line above it; by default to the console
    """

    def __init__(self, console: Console, show: Callable[[str], None] | None = None) -> None:
        self._show = show or partial(console.print, highlight=False, markup=False, emoji=False)
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[facts]}"),
            TimeElapsedColumn(),
            RemainingColumn(),
            console=console,
            refresh_per_second=4,
            expand=True,
        )
        self._progress.start()
        self._task = self._progress.add_task("starting", total=None, facts="")

    def preparing(self, what: str, done: int, total: int | None) -> None:
        self._progress.update(self._task, description=what, completed=done, total=total)

    def start(self, total_steps: int, step: int) -> None:
        self._progress.reset(self._task, description="training", total=total_steps, completed=step)

    def step(self, step: int, epoch: float, metrics: Mapping[str, float]) -> None:
        facts = f"epoch {epoch:.1f}  loss {metrics['train_loss']:.3f}"
        if (value := headline(metrics)) is not None:
            facts += f"  validation {value:.3f}"
        self._progress.update(self._task, completed=step, facts=facts)

    def message(self, text: str) -> None:
        self._show(text)

    def stop(self) -> None:
        self._progress.stop()


def is_on_terminal(console: Console) -> bool:
    """Whether a console writes to a terminal. Rich takes a file for one too if FORCE_COLOR is set."""
    return console.is_interactive and console.file.isatty()


@contextmanager
def transient_bar() -> Iterator[Callable[[str, int, int | None], None]]:
    """Show a progress bar on standard error, if that is a terminal; remove it at the end.

    Yields a function of (what is being done, how much is done, the total or None).
    """
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not is_on_terminal(console)) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


def choose_display(is_main: bool, *, is_logged: bool = False) -> Display:
    """The display for this process: none, a live bar, or lines.

    is_logged  whether lines go to the log of the rank, which also writes them to standard output
    """
    if not is_main:
        return Display()
    console, show = Console(), partial(log.info, "%s") if is_logged else None
    return BarDisplay(console, show) if is_on_terminal(console) else LogDisplay(show or _print)
