"""A message names the first of many, and says how many more there are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from toolkit.system.output.few import few, shortened


@pytest.mark.parametrize(
    "names, text", [([], ""), (["a"], "a"), ([1, 2], "1, 2"), (["a", "b", "c", "d"], "a, b and 2 more")]
)
def test_few_names_the_first_and_counts_the_others(names: Sequence[object], text: str) -> None:
    assert few(names, 2) == text


@pytest.mark.parametrize("text, shown", [("", ""), ("abc", "abc"), ("abcd", "ab…")])
def test_a_long_text_is_cut_to_the_width(text: str, shown: str) -> None:
    assert shortened(text, 3) == shown
