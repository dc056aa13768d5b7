"""Records are read from JSON that another version wrote or a user edited."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from toolkit.run.records.from_json import KEY, from_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    number: int = 0
    seconds: float | None = None
    name: str | None = None
    hosts: tuple[str, ...] = ()
    is_done: bool = False
    kind: str = field(default="", metadata={KEY: "class"})


def test_known_keys_become_fields_and_unknown_ones_are_ignored() -> None:
    known = {"number": 3, "seconds": 1.5, "name": "a", "is_done": True}
    line = {**known, "hosts": ["w1"], "class": "io", "new": 1}
    assert from_json(Record, line) == Record(**known, hosts=("w1",), kind="io")


@pytest.mark.parametrize("value", [None, [], {}, True, "x", float("nan"), 10**40])
def test_a_value_that_is_not_a_number_keeps_the_default(value: Any) -> None:
    assert from_json(Record, {"number": value, "seconds": value}) == Record()


@pytest.mark.parametrize("value", [None, {}, 1, "w1"])
def test_a_value_that_is_not_a_list_keeps_the_default(value: Any) -> None:
    assert from_json(Record, {"hosts": value}).hosts == ()
