"""Tables as Markdown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolkit.report.blocks import table
from toolkit.report.rendering import markdown


def test_numbers_are_right_aligned_and_the_best_is_bold() -> None:
    runs = table(
        "Runs", ["run", "loss"], [["a|b", "0.5"], ["<c>", "0.4"], ["d_e", "0.6"]], best=frozenset({(1, 1)})
    )
    assert markdown.table(runs).splitlines() == [
        "## Runs",
        "",
        "| run | loss |",
        "| --- | ---: |",
        "| a\\|b | 0.5 |",
        "| \\<c\\> | **0.4** |",
        "| d\\_e | 0.6 |",
    ]


@given(st.text())
def test_no_text_breaks_out_of_its_cell(text: str) -> None:
    line = markdown.table(table("t", ["x"], [[text]])).removesuffix("\n").rpartition("\n")[2]
    assert line.startswith("| ")
    assert line.endswith(" |")
    unescaped = line.replace("\\\\", "").replace("\\|", "")
    assert unescaped.count("|") == 2
