"""The report of a sweep: a self-contained page, its plots, and the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from toolkit.report.blocks import Document, Section, figure, table, table_section
from toolkit.report.formats import duration
from toolkit.report.rendering.writing import write_at
from toolkit.sweeps.folder import SweepDir
from toolkit.sweeps.results.axes import key_axes
from toolkit.sweeps.results.collect import Results, to_json
from toolkit.sweeps.results.tables import group_head, group_row, numbers, run_head, run_row

#: Rows of a page; the CSV file holds all.
_MOST_ROWS = 500


def write_report(sweep: SweepDir, results: Results) -> Path:
    """Write report.html, its plots, and the table as CSV, JSON and Markdown; return the page's path.

    Raises OSError if nothing can be written.
    """
    document = Document(
        title=f"Sweep {results.name}",
        note="; ".join(f"{key} from {space}" for key, space in results.spaces.items()),
        facts=_facts(results),
        sections=tuple(_sections(results)),
    )
    return write_at(document, to_json(results), sweep.report)


def _facts(results: Results) -> tuple[tuple[str, str], ...]:
    best, less = results.best, "less is better" if results.goal == "min" else "more is better"
    values = ", ".join(f"{key} {value}" for key, value in best.values.items()) if best else "–"
    spent = [row.seconds for row in results.rows if row.seconds is not None]
    return (
        (f"best {results.metric} ({less})", results.score(best.value) if best else "–"),
        ("best run", best.run_id if best else results.why_no_best),
        ("its values", values),
        ("runs", results.finished),
        ("training in all", duration(sum(spent)) if spent else "–"),
        *((("made from", Path(results.config).name),) if results.config else ()),
    )


def _sections(results: Results) -> Iterator[Section]:
    if axes := key_axes(results):
        for name, title in (("parallel", "All keys at once"), ("scatter", "Each key")):
            about = f"{title} of the sweep {results.name}, by {results.metric}"
            plot = figure(name, about, f"toolkit.sweeps.results.plots:{name}_plot", results, axes)
            yield Section(title=title, blocks=(plot,))
    if results.groups:
        rows = [group_row(results, place, each) for place, each in enumerate(results.groups, 1)]
        head, note = group_head(results), "Mean ± sample standard deviation over the seeds."
        yield table_section(table("Over the seeds", head, rows, texts=len(head) - 2, note=note))
    head = run_head(results)
    rows = [run_row(results, place, each) for place, each in enumerate(results.rows[:_MOST_ROWS], 1)]
    hidden = len(results.rows) - len(rows)
    note = f"{hidden} more runs are in runs.csv." if hidden else ""
    runs = table("Runs", head, rows, texts=len(head) - 4, note=note)
    yield Section(title=runs.title, blocks=(runs, numbers(results)))
