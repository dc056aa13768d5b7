"""Pictures of reports of made-up runs: a terminal, time lines, several runs side by side."""

from __future__ import annotations

import io
import tempfile
from dataclasses import replace
from pathlib import Path

from drawing import save, store, terminal_page
from PIL import Image
from rich.console import Console
from views._made_up_runs import make_runs

from slurm.runs.advice.run import advise
from toolkit.report.comparison.document import comparison_document, write_comparison
from toolkit.report.comparison.reading import compare
from toolkit.report.rendering.terminal import show
from toolkit.report.rendering.writing import write_report
from toolkit.report.run.document import run_document
from toolkit.report.run.summary import summarize
from toolkit.run.run_dir import RunDir

_COLUMNS = 96


def make(pictures: Path) -> None:
    """Draw what `stk report` shows for one run and for six."""
    with tempfile.TemporaryDirectory() as folder:
        runs = make_runs(Path(folder))
        _one(runs[0], pictures)
        _several(runs, Path(folder), pictures)


def _one(run: RunDir, pictures: Path) -> None:
    summary = summarize(run)
    advice = advise(run, summary)
    console = _terminal(f"stk report {run.run_id}")
    # Other pictures show the scores.
    show(run_document(replace(summary, by_epoch=(), scores={}, own=None), advice), console)
    save(terminal_page(console), pictures / "terminal" / "report.png", width=1000, height=2400)
    write_report(run, advice=advice)
    for name in ("timeline", "usage"):
        with Image.open(run.report / f"{name}.png") as image:
            store(image.convert("RGB"), pictures / "reports" / f"{name}.png")


def _several(runs: list[RunDir], folder: Path, pictures: Path) -> None:
    compared = compare(runs)
    console = _terminal(f"stk report {' '.join(run.run_id for run in runs)} --output all")
    show(comparison_document(compared), console)
    save(terminal_page(console), pictures / "terminal" / "comparison.png", width=1000, height=1200)
    page = write_comparison(compared, folder / "all")
    save(page.read_text(encoding="utf-8"), pictures / "reports" / "comparison.png", width=1120, height=1470)


def _terminal(command: str) -> Console:
    console = Console(record=True, file=io.StringIO(), width=_COLUMNS, force_terminal=True)
    console.print(f"[bold green]$[/] {command}", highlight=False)
    return console
