"""Files of texts: reading, and choosing texts evenly."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.workloads.spelling.data.texts.text_files import read_texts, spread


def test_texts_have_single_spaces_and_blank_lines_are_skipped(tmp_path):
    (tmp_path / "t.txt").write_bytes("\ufeffone  text\r\n\n \t\ncafé\u00a0two\nlast".encode())
    assert list(read_texts(tmp_path / "t.txt")) == ["one text", "café two", "last"]


def test_a_line_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "t.txt").write_bytes(b"one\ncaf\xe9\n")
    with pytest.raises(DataError, match=r"t\.txt:2: byte 4 is not UTF-8"):
        list(read_texts(tmp_path / "t.txt"))


@pytest.fixture(scope="module")
def hundred(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "t.txt"
    path.write_text("".join(f"{number}\n" for number in range(100)), encoding="utf-8")
    return path


@given(limit=st.integers(1, 120))
def test_a_limit_is_spread_evenly_over_the_file(hundred, limit):
    numbers = list(map(int, spread(hundred, limit)))
    assert len(numbers) == min(limit, 100)
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    assert max(steps, default=0) - min(steps, default=0) <= 1
