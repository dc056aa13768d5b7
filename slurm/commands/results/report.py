"""stk report"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path

from toolkit.errors import RunNotFound
from toolkit.exit_codes import ExitCode
from toolkit.run.run_dir import RunDir, experiment_dir, find_run
from toolkit.sweeps.folder import SWEEPS, SweepDir
from toolkit.system.output.json_text import json_text
from toolkit.system.output.sanitize import clean


def run(arguments: Namespace) -> int:
    """Write the report of a run and show its tables, or compare several runs."""
    runs = [_find(name) for name in arguments.runs]
    if len(runs) > 1:
        return _compare(runs, arguments)
    return _report(runs[0], arguments)


def _find(name: str) -> RunDir:
    try:
        return find_run(name)
    except RunNotFound as error:
        if SweepDir(experiment_dir() / SWEEPS / name).record.exists():
            raise RunNotFound(f"{error}. To report the sweep: stk sweep report {name}") from error
        raise


def render(run: RunDir) -> None:
    """Print the tables of a run."""
    from rich.console import Console

    from toolkit.report.rendering.terminal import show
    from toolkit.report.run.document import run_document
    from toolkit.report.run.summary import summarize

    show(run_document(summarize(run)), Console())


def _report(run: RunDir, arguments: Namespace) -> int:
    from rich.console import Console

    from slurm.runs.advice.run import advise
    from toolkit.report.rendering.terminal import show
    from toolkit.report.rendering.writing import report_json, write_report
    from toolkit.report.run.document import run_document
    from toolkit.report.run.summary import summarize

    summary = summarize(run)
    advice = advise(run, summary)
    write = partial(write_report, run, summary=summary, advice=advice)
    if arguments.output:
        page: Path | None = write(target=Path(arguments.output))
    else:
        page = written(write, " (--output writes them elsewhere)")
    if arguments.json:
        print(json_text([report_json(summary, advice)]))
    else:
        show(run_document(summary, advice), Console())
        if page is not None:
            print(f"report  {page}")
    return 0


def written(write: Callable[[], Path], hint: str = "") -> Path | None:
    """Write pages; return None after printing the error if that fails, as in another user's folder."""
    try:
        return write()
    except OSError as error:
        place = f" to {clean(os.path.dirname(error.filename))}" if error.filename else ""
        print(f"the pages cannot be written{place}: {error.strerror}{hint}", file=sys.stderr)
        return None


def _compare(runs: list[RunDir], arguments: Namespace) -> int:
    """Compare several runs; their own pages are not written, because there may be many."""
    from rich.console import Console

    from toolkit.report.comparison.document import comparison_document, write_comparison
    from toolkit.report.comparison.reading import compare
    from toolkit.report.model import to_json
    from toolkit.report.rendering.terminal import show

    compared = compare(runs)
    page = write_comparison(compared, Path(arguments.output)) if arguments.output else None
    for run_id, why in compared.unreadable.items():
        print(f"{run_id} cannot be read: {why}", file=sys.stderr)
    if arguments.json:
        print(json_text([to_json(each) for each in compared.runs]))
    else:
        show(comparison_document(compared), Console())
        if page is not None:
            print(f"report  {page}")
    return 0 if compared.runs else ExitCode.WRONG_INPUT
