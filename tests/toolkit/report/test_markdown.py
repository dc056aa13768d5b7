"""Tables as Markdown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolkit.report import markdown
from toolkit.report.sheets import sheet


def test_numbers_stand_right_and_the_best_in_bold() -> None:
    table = sheet("Runs", ["run", "loss"], [["a|b", "0.5"], ["<c>", "0.4"]], best=frozenset({(1, 1)}))
    assert markdown.sheet(table).splitlines() == [
        "## Runs",
        "",
        "| run | loss |",
        "| --- | ---: |",
        "| a\\|b | 0.5 |",
        "| \\<c\\> | **0.4** |",
    ]


@given(st.text())
def test_no_text_breaks_out_of_its_cell(text: str) -> None:
    line = markdown.sheet(sheet("t", ["x"], [[text]])).removesuffix("\n").rpartition("\n")[2]
    assert line.startswith("| ")
    assert line.endswith(" |")
    unescaped = line.replace("\\\\", "").replace("\\|", "")
    assert unescaped.count("|") == 2
