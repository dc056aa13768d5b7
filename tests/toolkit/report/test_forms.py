"""One document rendered for terminal, page, Markdown and spreadsheets."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure as Canvas
from rich.console import Console

from tests.toolkit.report.parsed_page import parse
from toolkit.report.blocks import Document, Figure, Numbers, Section, Text, table, turned
from toolkit.report.plotting.themes import Theme
from toolkit.report.rendering.markdown import markdown
from toolkit.report.rendering.markdown import table as markdown_table
from toolkit.report.rendering.page import page
from toolkit.report.rendering.terminal import show
from toolkit.report.rendering.writing import spreadsheets

HOSTILE = "<b>|[red]\x1b*</b>"


def draw(theme: Theme) -> bytes:
    stream = io.BytesIO()
    Canvas(figsize=(1, 1), facecolor=theme.background).savefig(stream, format="png")
    return stream.getvalue()


FIGURE = Figure(name="bars", about="Bars", draw=draw, in_terminal=lambda width: f"{width} columns of bars")
SHOWN = table("Shown", ["name", "n"], [[HOSTILE, "1"], ["b", "2"]], best=frozenset({(0, 0)}), note="a note")
WIDE = table(
    "Wide",
    ["true", *map(str, range(13))],
    [[str(row), *["7"] * 13] for row in range(13)],
    shares=((1 / 13,) * 13,) * 13,
    instead=(FIGURE, table("Instead", ["a", "b"], [["x", "9"]])),
)
DOCUMENT = Document(
    title="run <1>",
    state="finished",
    facts=(("steps", "10"),),
    sections=(
        Section(title="First", blocks=(SHOWN, Numbers(name="all", head=["n"], rows=[[1.5], ["=1"]]))),
        Section(title="Matrix", blocks=(WIDE,)),
        Section(title="Only a page", blocks=(Text(text=f"unseen {HOSTILE}"),), page_only=True),
        Section(title="Old", blocks=(table("Old", ["o"], [["4"]]),), folded="what was before"),
        Section(title="Older", blocks=(table("Older", ["o"], [["3"]]),), folded="what was before"),
        Section(title="Nothing to see", blocks=(Numbers(name="more", head=["m"], rows=[]),)),
    ),
)


def terminal(document: Document, width: int = 60) -> str:
    console = Console(record=True, width=width, file=io.StringIO(), legacy_windows=False)
    show(document, console)
    return console.export_text()


def test_a_terminal_leaves_out_page_only_sections_and_tables_too_wide() -> None:
    text = terminal(DOCUMENT, 40)
    assert all(each in text for each in ("run <1>", "steps", "Shown", HOSTILE, "a note"))
    assert "40 columns of bars" in text
    assert "Instead" in text
    assert not any(each in text for each in ("Wide", "unseen", "Old", "Nothing to see"))
    assert "Wide" in terminal(DOCUMENT, 200)


def test_a_page_folds_adjacent_sections_together_and_escapes_every_text() -> None:
    html = page(DOCUMENT)
    found = parse(html)
    assert found.unclosed == []
    assert found.headings == ["run <1>", "First", "Matrix", "Only a page", "Old", "Older"]
    assert html.count("what was before") == 1
    assert found.tables[0] == [["name", "n"], [HOSTILE, "1"], ["b", "2"]]
    assert [rows[0][0] for rows in found.tables] == ["name", "a", "o", "o"]
    assert not found.tags & {"b", "script"}


def test_a_page_wraps_long_values_and_aligns_numbers() -> None:
    cells = table("Keys", ["key", "a", "b"], [["run", "python train.py " * 4, "7"]])
    html = page(Document(title="two", state="", facts=(), sections=(Section(title="", blocks=(cells,)),)))
    assert ('class="label">python' in html, 'class="number">7<' in html) == (True, True)


def test_markdown_leaves_out_folded_sections() -> None:
    text = markdown(DOCUMENT)
    assert "| **\\<b\\>\\|\\[red\\]" in text
    assert "![Bars](bars.png)" in text
    assert "unseen" in text
    assert not any(each in text for each in ("Wide", "Old", "Nothing to see"))


def test_markdown_aligns_numbers_right_and_shows_the_best_in_bold() -> None:
    rows = [["a|b", "0.5"], ["<c>&amp;", "0.4"], ["d_e", "0.6"]]
    assert markdown_table(table("Runs", ["run", "loss"], rows, best=frozenset({(1, 1)}))).splitlines() == [
        "## Runs",
        "",
        "| run | loss |",
        "| --- | ---: |",
        "| a\\|b | 0.5 |",
        "| \\<c\\>\\&amp; | **0.4** |",
        "| d\\_e | 0.6 |",
    ]


@given(st.text())
def test_no_text_breaks_out_of_its_cell_in_markdown(text: str) -> None:
    line = markdown_table(table("t", ["x"], [[text]])).removesuffix("\n").rpartition("\n")[2]
    assert line.startswith("| ")
    assert line.endswith(" |")
    unescaped = line.replace("\\\\", "").replace("\\|", "")
    assert unescaped.count("|") == 2


def test_spreadsheets_contain_full_numbers_and_no_formulas() -> None:
    assert spreadsheets(DOCUMENT) == {"all.csv": "n\n1.5\n'=1\n", "more.csv": "m\n"}
    assert list(DOCUMENT.figures()) == ["bars.png"]


def test_a_table_of_texts_is_shown_as_lines_in_a_terminal() -> None:
    advice = table(
        "Advice", ["about", "found", "bound", "why"], [["memory", "4 GB", "5 GB", "less"]], texts=4
    )
    lines = terminal(Document(title="", sections=(Section(title="", blocks=(advice,)),))).splitlines()
    assert [line.split() for line in lines[-3:]] == [
        ["memory", "found", "4", "GB"],
        ["bound", "5", "GB"],
        ["why", "less"],
    ]


@pytest.mark.parametrize("few, shown", [(None, 60), ((2, 1), 2)])
def test_a_terminal_shows_few_rows_of_many_and_says_which(few: tuple[int, ...] | None, shown: int) -> None:
    rows = [[f"row{number}"] for number in range(70)]
    long = table("Long", ["name"], rows, few=few, few_note="the last ones")
    text = terminal(Document(title="", sections=(Section(title="", blocks=(long,)),)))
    assert text.count("row") - text.count("rows") == shown
    assert ("the last ones" in " ".join(text.split())) == (few is not None)


def test_turned_and_narrowed_tables_keep_the_marks_of_their_cells() -> None:
    rows = [["a", "1", "2"], ["b", "3", "4"]]
    best = frozenset({(0, 1), (1, 2)})
    runs = table("Runs", ["run", "loss", "f1"], rows, feet=(("all", "4", "6"),), best=best, optional=(1, 2))
    across, narrow = turned(runs, "metric"), runs.without(1)
    assert (across.head, across.best) == (("metric", "a", "b"), {(0, 1), (1, 2)})
    assert across.rows == (("loss", "1", "3"), ("f1", "2", "4"))
    assert (narrow.head, narrow.rows) == (("run", "f1"), (("a", "2"), ("b", "4")))
    assert (narrow.feet, narrow.best, narrow.optional, narrow.texts) == ((("all", "6"),), {(1, 1)}, (1,), 1)
