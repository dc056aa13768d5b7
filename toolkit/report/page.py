"""Building blocks of a page that can be sent around: one file, nothing loaded, no script.

Text becomes markup only through `tag`, which escapes everything that is not `Html` already.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence

from toolkit.report.sheets import Sheet

_STYLE = """
:root { color-scheme: light dark; --page: #f4f5f7; --card: #ffffff; --ink: #1f2328; --quiet: #5c6674;
  --line: #e1e4e8; --shade: 0, 114, 178; --good: #0b7a53; --bad: #b3261e; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --page: #0e1116; --card: #171b21; --ink: #e6e9ee;
  --quiet: #98a2b0; --line: #2b323c; --shade: 86, 180, 233; --good: #3fcf9b; --bad: #ff8a80;
  --warn: #f0b429; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); overflow-wrap: break-word;
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 28px 20px 48px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 12px 0 0; display: inline; }
h2 { font-size: 17px; margin: 0 0 12px; } h3 { font-size: 14px; margin: 18px 0 6px; }
section, .tiles > div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
section { padding: 18px 20px; margin-top: 18px; overflow-x: auto; }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; margin: 18px 0 0; }
.tiles > div { flex: 1 1 300px; padding: 12px 16px; }
.tiles dt { color: var(--quiet); font-size: 13px; }
.tiles dd { margin: 2px 0 0; font-weight: 600; }
.state { display: inline-block; vertical-align: 4px; padding: 1px 10px; border-radius: 99px;
  border: 1px solid currentColor; font-size: 13px; font-weight: 600; color: var(--warn); }
.state.finished { color: var(--good); } .state.failed { color: var(--bad); }
.quiet { color: var(--quiet); font-size: 13px; } p { margin: 8px 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 14px 5px 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { color: var(--quiet); font-weight: 600; font-size: 13px; }
tbody tr:last-child > * { border-bottom: 0; }
tfoot > tr > * { border-bottom: 0; font-weight: 600; }
tfoot > tr:first-child > * { border-top: 2px solid var(--line); }
.best { color: var(--good); }
.number { text-align: right; white-space: nowrap; } th.number { white-space: normal; }
.matrix th, .matrix td { padding: 8px 12px; } .matrix th { max-width: 150px; }
.matrix thead th + th { text-align: center; }
.matrix td { text-align: center; border: 2px solid var(--card); border-radius: 6px; min-width: 76px; }
.matrix small { display: block; opacity: .8; }
.dense th, .dense td { padding: 5px 4px; } .dense tbody th { max-width: 230px; }
.dense td { min-width: 62px; font-size: 13px; }
.dense thead th + th { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left;
  vertical-align: middle; max-width: none; }
.label { overflow-wrap: anywhere; min-width: 150px; } td.label { unicode-bidi: isolate; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; min-width: 260px; }
img { display: block; width: 100%; height: auto; } picture + picture img { margin-top: 22px; }
.pair { display: grid; grid-template-columns: minmax(0, 17fr) minmax(0, 10fr); column-gap: 18px; }
@media (max-width: 900px) { .pair { grid-template-columns: minmax(0, 1fr); } }
.grid { display: grid; gap: 18px; grid-template-columns: repeat(auto-fill, minmax(min(440px, 100%), 1fr)); }
.pair > section { min-width: 0; } .failure { border-color: var(--bad); }
pre { margin: 8px 0 0; font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre-wrap; }
summary { cursor: pointer; font-weight: 600; } main > details > summary { margin: 18px 2px 0; }
@media print { body { background: none; } section { break-inside: avoid; } }
"""
#: The browser itself is told that nothing may be loaded or run.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Html(str):
    """Markup that is safe as it stands."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: str) -> Html:
    """Return an element; text children and attributes are escaped. `class_` stands for class."""
    written = "".join(f' {key.rstrip("_")}="{html.escape(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str) -> Html:
    """Return the children one after the other, escaping those that are text."""
    return Html("".join(child if isinstance(child, Html) else html.escape(child) for child in children))


def section(title: str, *children: str, class_: str = "") -> Html:
    """Return a card with a heading."""
    attributes = {"class_": class_} if class_ else {}
    heading = tag("h2", title) if title else Html()
    return tag("section", heading, *children, **attributes)


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    feet: Sequence[Sequence[str]] = (),
    numbers: Sequence[int] = (),
    labels: Sequence[int] = (),
    texts: Sequence[int] = (),
) -> Html:
    """Return a table. Columns: numbers flush right; long labels broken; texts keep their line ends."""
    styles = dict.fromkeys(numbers, "number") | dict.fromkeys(labels, "label") | dict.fromkeys(texts, "text")

    def line(cells: Sequence[str], cell: str) -> Html:
        made = (
            tag(cell, content, class_=styles[column]) if column in styles else tag(cell, content)
            for column, content in enumerate(cells)
        )
        return tag("tr", *made)

    parts = [tag("thead", line(head, "th")), tag("tbody", *(line(row, "td") for row in rows))]
    if feet:
        parts.append(tag("tfoot", *(line(foot, "td") for foot in feet)))
    return tag("table", *parts)


def sheet(table_: Sheet) -> Html:
    """Return a table of cells as they are, the best ones marked, with its note below."""
    rows = [
        [
            tag("strong", cell, class_="best") if (row, column) in table_.best else cell
            for column, cell in each
        ]
        for row, each in enumerate(enumerate(cells) for cells in table_.rows)
    ]
    numbers = range(table_.texts, len(table_.head))
    made = table(table_.head, rows, feet=table_.feet, numbers=numbers, labels=[0])
    return join(made, tag("p", table_.note, class_="quiet") if table_.note else "")


def sheet_section(table_: Sheet, *above: str) -> Html:
    """Return a card with a table, and what stands above it."""
    return section(table_.title, *above, sheet(table_))


def picture(light_png: bytes, dark_png: bytes, description: str) -> Html:
    """Return an image that follows the reader's light or dark setting."""
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="{_data(dark_png)}">'
    image = f'<img src="{_data(light_png)}" alt="{html.escape(description)}">'
    return Html(f"<picture>{dark}{image}</picture>")


def document(title: str, *children: str) -> str:
    """Return a whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{tag('title', title)}\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{tag('main', *children)}\n</body>\n</html>\n"
    )


def _data(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")
