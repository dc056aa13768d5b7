"""A table of any length fits any terminal, with the selected row in sight."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment

from slurm.runs.watching.overview import KEYS, table_view
from slurm.status.columns import footer
from slurm.status.rows import RunStatus
from slurm.status.table import blocks
from tests.slurm.runs.watching.folders import ROW

HUNDRED = [replace(ROW, run_id=f"tiny-{number:03}") for number in range(100)]


def drawn(rows: list[RunStatus], selected: int, width: int = 100, height: int = 20) -> list[list[Segment]]:
    """The lines on the terminal."""
    console = Console(file=io.StringIO(), width=width, height=height)
    view = table_view(list(blocks(rows, width)), selected, width, height)
    return console.render_lines(view, pad=False)


def texts(lines: list[list[Segment]]) -> list[str]:
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


def highlighted(lines: list[list[Segment]]) -> list[str]:
    """The highlighted lines, without the line of keys."""
    return [
        text
        for text, line in zip(texts(lines[:-1]), lines, strict=False)
        if line and all(segment.style and segment.style.reverse for segment in line)
    ]


@pytest.mark.parametrize("selected", [0, 1, 50, 98, 99])
def test_selected_row_of_a_long_table_is_visible(selected: int) -> None:
    lines = drawn(HUNDRED, selected)
    (row,) = highlighted(lines)
    assert row.startswith(f"tiny-{selected:03} ")
    assert len(lines) == 20


def test_long_table_scrolls_to_its_first_and_its_last_row() -> None:
    first, last = (texts(drawn(HUNDRED, selected)) for selected in (0, 99))
    assert [first[1].split()[0], last[16].split()[0]] == ["tiny-000", "tiny-099"]
    assert first[0].split()[0] == last[0].split()[0] == "run"


def test_keys_are_on_the_last_line_and_the_footer_above_them() -> None:
    shown = texts(drawn(HUNDRED, 0))
    assert all(key in shown[-1] and words in shown[-1] for key, words in KEYS)
    assert shown[-2] == footer(HUNDRED)


def test_reason_is_visible_below_its_row() -> None:
    rows = [replace(row, state="failed", reason=f"why {row.run_id}") for row in HUNDRED]
    shown = texts(drawn(rows, 99))
    assert shown[-5].startswith("tiny-099")
    assert shown[-4].strip() == "why tiny-099"


def test_table_without_runs_shows_its_titles_and_empty_lines() -> None:
    shown = texts(drawn([], 0, height=6))
    assert shown[0].split() == ["run", "state"]
    assert shown[1:-1] == [""] * 4


@settings(max_examples=60)
@given(
    st.integers(1, 200),
    st.integers(2, 60),
    st.lists(st.tuples(st.text(min_size=1, max_size=40), st.text(max_size=200)), min_size=1, max_size=40),
    st.integers(0, 39),
)
def test_every_line_fits_into_any_terminal(
    width: int, height: int, runs: list[tuple[str, str]], selected: int
) -> None:
    rows = [replace(ROW, run_id=name, state="failed", reason=reason) for name, reason in runs]
    lines = drawn(rows, selected % len(rows), width, height)
    assert len(lines) == height
    assert all(sum(segment.cell_length for segment in line) <= width for line in lines)
    assert len(highlighted(lines)) == (1 if height > 2 else 0)
