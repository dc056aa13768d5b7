"""No text in a CSV file is a formula to a spreadsheet, and the quoting can be undone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.system.output.csv_texts import unquoted
from toolkit.report.rendering.writing import csv_text
from toolkit.system.output.csv_cells import quoted

FORMULAS = [
    "=cmd|' /C calc'!A0", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1+1", "\r=1+1", "=1", "-x",
    "'=1", "==",
]  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_quoted(text: str) -> None:
    assert quoted(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "good", "-", "+", "-1", "+1.5e-3", "-.5", "'tis", "a=b", "3 - 2"])
def test_text_that_is_not_a_formula_is_unchanged(text: str) -> None:
    assert quoted(text) == text


@given(st.one_of(st.text(), st.text("'=+-@\t\r1.ex", max_size=6)))
def test_quoting_can_be_undone(text: str) -> None:
    assert unquoted(quoted(text)) == text


def test_formulas_in_heads_and_rows_of_a_table_are_quoted_but_no_numbers() -> None:
    text = csv_text(["class", "=head", "", ""], [["=row", -1.5, None, True]])
    assert text == "class,'=head,,\n'=row,-1.5,,True\n"
