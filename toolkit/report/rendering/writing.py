"""The report of a run as files: a self-contained page, and the files beside it."""

from __future__ import annotations

import csv
import io
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolkit.errors import DataError
from toolkit.files import write_atomic, write_json
from toolkit.report.advice import Advice
from toolkit.report.blocks import Document, Numbers
from toolkit.report.formats import clean, file_name
from toolkit.report.model import RunSummary, to_json
from toolkit.report.plotting.themes import LIGHT
from toolkit.report.rendering.markdown import markdown
from toolkit.report.rendering.page import page
from toolkit.report.run.document import run_document
from toolkit.report.run.summary import summarize
from toolkit.run.events import note_event
from toolkit.run.run_dir import RunDir
from toolkit.system.output.csv_cells import harmless

log = logging.getLogger("toolkit")

_ENDINGS = (".html", ".htm")


def write_report(
    run: RunDir,
    result: Mapping[str, Any] | None = None,
    *,
    summary: RunSummary | None = None,
    advice: Sequence[Advice] | None = None,
    thorough: bool = True,
    target: Path | None = None,
) -> Path:
    """Write report.html, its plots, report.json, report.md and tables as CSV; return the page's path.

    result    of a run that is about to finish, because result.json is written last
    summary   of the run, if it was read before
    advice    None if it was not requested
    thorough  False leaves out the slowest plots: at the end of a run, its hosts wait
    target    as `write_at` takes it; by default report/ in the run's folder
    Raises DataError if the run folder cannot be read, or its report folder is another user's link;
    OSError if nothing can be written.
    """
    if target is None:
        _refuse_link(run.report)
    summary = summary or summarize(run, result)
    config = clean(run.config.read_text(encoding="utf-8")) if run.config.exists() else ""
    document = run_document(summary, advice, config=config, thorough=thorough)
    return write_at(document, report_json(summary, advice), target or run.report)


def write_final_report(run: RunDir, result: Mapping[str, Any]) -> None:
    """Write the report of a run that is about to finish. If it fails, the run does not fail."""
    try:
        write_report(run, result, thorough=False)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        note_event(run, "report_failed", reason=reason)
        log.warning("the report could not be written (`stk report` tries again): %s", reason)


def _refuse_link(folder: Path) -> None:
    """Raise DataError for another user's link: the report would overwrite files where it points."""
    if folder.is_symlink() and folder.lstat().st_uid not in (0, os.geteuid()):
        raise DataError(f"{folder} is a link of another user's: no report is written to its target")


def report_json(summary: RunSummary, advice: Sequence[Advice] | None) -> dict[str, Any]:
    """Return the numbers of a report, with the advice unless it is None."""
    known = {} if advice is None else {"advice": [asdict(each) for each in advice]}
    return to_json(summary) | known


def write_at(document: Document, numbers: Any, target: Path) -> Path:
    """Write a report and its numbers; return the page's path.

    target  the page if it ends in .html; else a folder for page, plots, Markdown, CSV and JSON
    Raises OSError if nothing can be written.
    """
    if target.suffix.lower() in _ENDINGS:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(target, page(document))
        return target
    target.mkdir(parents=True, exist_ok=True)
    write_json(target / "report.json", numbers)
    for name, text in spreadsheets(document).items():
        write_atomic(target / name, text)
    drawn = {figure.name: figure.draw(LIGHT) for figure in document.figures().values()}
    for name, png in drawn.items():
        write_atomic(target / f"{name}.png", png)
    write_atomic(target / "report.md", markdown(document))
    # Last, so that a page always finds the files beside it.
    write_atomic(made := target / "report.html", page(document, drawn))
    return made


def spreadsheets(document: Document) -> dict[str, str]:
    """Return the texts of all tables of numbers by file name."""
    found = (block for block in document.blocks() if isinstance(block, Numbers))
    return {file_name(f"{numbers.name}.csv"): csv_text(numbers.head, numbers.rows) for numbers in found}


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV; None is an empty cell, and no text is read as a formula."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(harmless(head))
    writer.writerows(map(harmless, rows))
    return stream.getvalue()
