"""Several runs as one page, or as a folder with the page, its plots, Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from toolkit.files import write_atomic, write_json
from toolkit.report import formats, markdown, page
from toolkit.report.comparison.documents import to_json
from toolkit.report.comparison.reading import Compared
from toolkit.report.comparison.sheets import classes_sheet, has_more_scores, scores_sheet, sheets
from toolkit.report.comparison.spreadsheets import spreadsheets
from toolkit.report.page import Html, tag
from toolkit.report.sheets import Sheet
from toolkit.report.themes import DARK, LIGHT

_PAGE, _MARKDOWN, _JSON = "report.html", "report.md", "report.json"
_ENDINGS = (".html", ".htm")
_TIME_LINES = "timelines.png"
#: Loss and main metric, each with the means over seeds.
_CURVES = 4
_ALT_TEXTS = {_TIME_LINES: "Time lines of the runs", "train_loss.png": "Training loss of each run"}
_OWN_TITLES = {"confusion": "Confusion", "curves": "ROC, precision and recall", "slices": "Slices"}
#: Light and dark.
Dresses = tuple[bytes, bytes]


def write_comparison(compared: Compared, target: Path) -> Path:
    """Set several runs side by side; return the page's path.

    target  the page, where it ends in .html; else a folder for page, plots, Markdown, CSV and JSON
    Raises OSError where nothing can be written.
    """
    drawn = _drawn(compared)
    if target.suffix.lower() in _ENDINGS:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(target, _page(compared, drawn))
        return target
    target.mkdir(parents=True, exist_ok=True)
    for name, (light, _) in drawn.items():
        write_atomic(target / name, light)
    for name, text in spreadsheets(compared.runs):
        write_atomic(target / name, text)
    write_json(target / _JSON, to_json(compared))
    write_atomic(target / _MARKDOWN, _markdown(compared, drawn))
    # Last, so that a page always finds its neighbours.
    write_atomic(target / _PAGE, _page(compared, drawn))
    return target / _PAGE


def _drawn(compared: Compared) -> dict[str, Dresses]:
    """Draw all plots of the comparison itself."""
    # matplotlib takes longer to import than all else here.
    from toolkit.report.comparison.plots import comparison_plots

    plots = comparison_plots(compared.runs)
    return {name: (draw(LIGHT), draw(DARK)) for name, draw in plots.items()}


def _page(compared: Compared, drawn: dict[str, Dresses]) -> str:
    count = len(compared.runs) + len(compared.unreadable)
    parts = [tag("h1", f"{count} runs compared")]
    first, *rest = sheets(compared)
    parts.append(page.sheet_section(first))
    parts.extend(page.sheet_section(each) for each in rest if not _is_last(each))
    parts.extend(_curves(drawn))
    parts.extend(map(page.sheet_section, _more_sheets(compared)))
    parts.extend(_own(compared))
    times = [_picture(name, both) for name, both in drawn.items() if name == _TIME_LINES]
    parts.extend(page.sheet_section(each, *times) for each in rest if _is_last(each))
    return page.document("Runs compared", *parts)


def _curves(drawn: dict[str, Dresses]) -> Iterator[Html]:
    """Yield the curves of the first metrics, and the others to be unfolded."""
    curves = [_picture(name, both) for name, both in drawn.items() if name != _TIME_LINES]
    if curves:
        yield page.section("Curves", *curves[:_CURVES])
    if curves[_CURVES:]:
        more = tag("summary", f"{len(curves) - _CURVES} more curves")
        yield tag("details", more, page.section("", *curves[_CURVES:]))


def _is_last(table: Sheet) -> bool:
    return table.title == "What they took"


def _more_sheets(compared: Compared) -> Iterator[Sheet]:
    if has_more_scores(compared.runs):
        yield scores_sheet(compared.runs)
    classes = classes_sheet(compared.runs)
    if classes is not None:
        yield classes


def _own(compared: Compared) -> Iterator[Html]:
    """Yield the runs' own plots of a kind, side by side."""
    from toolkit.report.comparison.plots import own_plots

    for name, plots in own_plots(compared.runs).items():
        stem = name.removesuffix(".png")
        figures = [
            page.picture(draw(LIGHT), draw(DARK), f"{formats.metric_title(stem)} of {run_id}")
            for run_id, draw in plots.items()
        ]
        grid = tag("div", *(tag("div", figure) for figure in figures), class_="grid")
        yield page.section(f"{_OWN_TITLES.get(stem.partition('_')[0], stem)}, side by side", grid)


def _picture(name: str, both: Dresses) -> Html:
    return page.picture(*both, _description(name))


def _description(name: str) -> str:
    stem = name.removesuffix(".png")
    if stem.endswith("_seeds"):
        return f"Validation {formats.metric_title(stem.removesuffix('_seeds'))}, mean over seeds"
    return _ALT_TEXTS.get(name, f"Validation {formats.metric_title(stem)} of each run")


def _markdown(compared: Compared, drawn: dict[str, Dresses]) -> str:
    count = len(compared.runs) + len(compared.unreadable)
    parts = [markdown.heading(f"{count} runs compared", 1)]
    parts += [markdown.sheet(each) for each in (*sheets(compared), *_more_sheets(compared))]
    parts += [markdown.picture(name, _description(name)) for name in drawn]
    return markdown.document(parts)
