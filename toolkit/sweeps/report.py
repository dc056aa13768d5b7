"""The report of a sweep: one page to read, keep and send around, its plots, and the numbers."""

from __future__ import annotations

from pathlib import Path

from toolkit.files import write_atomic, write_json
from toolkit.report import page
from toolkit.report.formats import duration, score
from toolkit.report.page import Html, tag
from toolkit.report.themes import DARK, LIGHT
from toolkit.sweeps.folder import SweepDir
from toolkit.sweeps.results import Results, to_json
from toolkit.sweeps.tables import as_csv, as_markdown, group_head, group_row, run_head, run_row

_TITLES = {"parallel.png": "All keys at once", "scatter.png": "Each key"}
#: Rows of a page; the CSV file holds all.
_MOST_ROWS = 500


def write_report(sweep: SweepDir, results: Results) -> Path:
    """Write report.html, its plots, and the table as CSV, JSON and Markdown; return the page's path.

    Raises OSError where nothing can be written.
    """
    sweep.report.mkdir(parents=True, exist_ok=True)
    write_json(sweep.report_json, to_json(results))
    write_atomic(sweep.report_csv, as_csv(results))
    write_atomic(sweep.report_markdown, as_markdown(results))
    pictures = _write_plots(sweep, results)
    # Last, so that a page always finds its neighbours.
    write_atomic(sweep.report_html, _page(results, pictures))
    return sweep.report_html


def _write_plots(sweep: SweepDir, results: Results) -> list[Html]:
    """Write the light plots beside the page; return the sections that hold both dresses."""
    # matplotlib takes longer to import than all else here.
    from toolkit.sweeps.plots import sweep_plots

    sections = []
    for name, draw in sweep_plots(results).items():
        light = draw(LIGHT)
        write_atomic(sweep.report / name, light)
        description = f"{_TITLES[name]} of the sweep {results.name}, by {results.metric}"
        sections.append(page.section(_TITLES[name], page.picture(light, draw(DARK), description)))
    return sections


def _page(results: Results, pictures: list[Html]) -> str:
    parts = [tag("h1", f"Sweep {results.name}"), _headline(results), *pictures]
    if len(results.groups) > 1:
        rows = [group_row(results, place, each) for place, each in enumerate(results.groups, 1)]
        head = group_head(results)
        note = tag("p", "Mean ± sample standard deviation over the seeds.", class_="quiet")
        table = page.table(head, rows, numbers=[0, len(head) - 2, len(head) - 1])
        parts.append(page.section("Over the seeds", table, note))
    head = run_head(results)
    rows = [run_row(results, place, each) for place, each in enumerate(results.rows[:_MOST_ROWS], 1)]
    table = page.table(head, rows, numbers=[0, len(head) - 4, len(head) - 1])
    hidden = len(results.rows) - len(rows)
    more = [tag("p", f"{hidden} more runs stand in runs.csv.", class_="quiet")] if hidden else []
    parts.append(page.section("Runs", table, *more))
    return page.document(f"Sweep {results.name}", *parts)


def _headline(results: Results) -> Html:
    """What one wants to know first, as tiles."""
    best, less = results.best, "less is better" if results.goal == "min" else "more is better"
    values = ", ".join(f"{key} {value}" for key, value in best.values.items()) if best else "–"
    spent = [row.seconds for row in results.rows if row.seconds is not None]
    tiles = {
        f"best {results.metric} ({less})": score(results.metric_name, best.value) if best else "–",
        "best run": best.run_id if best else "no run has finished yet",
        "its values": values,
        "finished": f"{len(results.ranked)} of {len(results.rows)} runs",
        "training in all": duration(sum(spent)) if spent else "–",
        "made from": Path(results.config).name,
    }
    drawn = "; ".join(f"{key} from {space}" for key, space in results.spaces.items())
    note = [tag("p", drawn, class_="quiet")] if drawn else []
    boxes = [tag("div", tag("dt", name), tag("dd", value)) for name, value in tiles.items()]
    return page.join(tag("dl", *boxes, class_="tiles"), *note)
