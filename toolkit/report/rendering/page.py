"""A report as one self-contained page: one file that loads nothing and has no script.

jinja2 escapes every text of the template.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import groupby
from typing import Any

from toolkit.report import formats
from toolkit.report.blocks import Block, Document, Figure, Numbers, Table
from toolkit.report.plotting.themes import DARK, LIGHT
from toolkit.report.rendering.page_template import POLICY, STYLE, TEMPLATE

#: Addresses of a figure in light and in dark colours.
Pictures = dict[str, str]
#: How a paragraph looks: class names of the style sheet.
_PARAGRAPHS = {"plain": "", "note": "quiet", "strong": "text strong", "code": "text"}
#: With more columns, the heads of a matrix are vertical and its cells are narrow.
_ROOMY_COLUMNS = 6
#: Longer cells are texts, such as commands.
_NUMBER_WIDTH = 60


def page(document: Document, drawn: Mapping[str, bytes] | None = None) -> str:
    """Return a whole page.

    drawn   figures that are already drawn in light colours, by name
    """
    blocks = partial(_blocks, drawn=drawn or {})
    shown = (each for each in document.sections if not all(isinstance(of, Numbers) for of in each.blocks))
    # Neighbours with the same fold line are folded together.
    folds = [(line, list(sections)) for line, sections in groupby(shown, lambda each: each.folded)]
    html: str = _template().render(document=document, folds=folds, blocks=blocks)
    return html.lstrip()


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined  # a terminal does not need it

    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    helpers = {"marked": _marked, "percent": formats.share, "shade": _shade, "styles_of": _styles}
    values = {"paragraphs": _PARAGRAPHS, "policy": POLICY, "roomy": _ROOMY_COLUMNS, "style": STYLE}
    return environment.from_string(TEMPLATE, globals={**helpers, **values})


def _blocks(blocks: Sequence[Block], drawn: Mapping[str, bytes]) -> Iterator[tuple[str, Block, Pictures]]:
    """Yield the blocks of a page: the kind of a block, the block, and the pictures of a figure."""
    for each in blocks:
        if isinstance(each, Table) and each.is_too_wide:
            yield from _blocks(each.instead, drawn)
        elif isinstance(each, Figure):
            light = drawn.get(each.name) or each.draw(LIGHT)
            yield "Figure", each, {"light": _data(light), "dark": _data(each.draw(DARK))}
        elif not isinstance(each, Numbers):
            yield type(each).__name__, each, {}


def _styles(table: Table) -> list[str]:
    """The CSS class of each column: numbers align right, long texts wrap, prose keeps its line breaks."""
    numbers = len(table.head) - table.texts
    text = "label" if numbers else ""
    texts = ["text" if column in table.prose else text for column in range(table.texts)]
    others = range(table.texts, len(table.head))
    is_long = [any(len(row[column]) > _NUMBER_WIDTH for row in table.rows) for column in others]
    return texts + ["label" if each else "number" for each in is_long]


def _marked(table: Table) -> Iterator[list[str]]:
    """The rows, with marked best cells."""
    from markupsafe import Markup

    strong = Markup('<strong class="best">{}</strong>')  # format() escapes what it puts in
    for row, cells in enumerate(table.rows):
        best = {column for at, column in table.best if at == row}
        yield [strong.format(cell) if column in best else cell for column, cell in enumerate(cells)]


def _shade(share: float | None) -> str:
    # At most 0.55, so that text is readable on the shade in light and dark mode.
    return f"{0.55 * (share or 0.0) ** formats.SHADE_POWER:.3f}"


def _data(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")
