"""A description of the allowed values says whether one value is meant, or several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolkit.config.checking.descriptions import allowed
from toolkit.config.fields import Limits


@pytest.mark.parametrize(
    "hint, limits, words",
    [
        (str, Limits(path=True), "the name of a file or folder"),
        (str | None, Limits(path=True), "the name of a file or folder, or null"),
        (tuple[str, ...], Limits(path=True), "a list of names of files or folders"),
        (tuple[Path, ...], Limits(path=True), "a list of names of files or folders"),
        (str, Limits(choices=("min", "max")), "one of min, max"),
        (tuple[str, ...], Limits(choices=("min", "max")), "a list of values that are each one of min, max"),
        (
            dict[str, str],
            Limits(choices=("min", "max")),
            "a mapping of names to values that are each one of min, max",
        ),
        (tuple[float, float], Limits(minimum=0), "a list of 2 numbers of at least 0"),
        (dict[str, Any], Limits(), "a mapping of names to values"),
    ],
)
def test_a_list_is_not_described_like_one_of_its_values(hint: Any, limits: Limits, words: str) -> None:
    assert allowed(hint, limits) == words
