"""Overrides set entries of a default, and keep its other entries."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit.config.composition.begun import NoEntry, filled, marked
from toolkit.config.origins import Key, Origin, Origins

#: A key whose default is any plain value.
KEY = ("key",)


def value(written: Any, default: Any, *begun: Key) -> Any:
    """What the key gets if overrides began these parts of what is written."""
    origins = Origins(Origin("the experiment"))
    for key in begun:
        origins.begin(key)
    return filled(marked(written, KEY, origins), default, KEY)


@pytest.mark.parametrize(
    "written, default, expected",
    [
        ({"1": 5}, [1, 2], [1, 5]),
        ({"3": 6, "2": 5}, (1, 2), [1, 2, 5, 6]),
        ({"b": 5}, {"a": 1, "b": 2}, {"a": 1, "b": 5}),
        ({"0": 5}, {}, {"0": 5}),
        ({"0": 5, "1": 6}, None, [5, 6]),
        ({"1": 5}, None, {"1": 5}),
        ({"a": 5}, 3, {"a": 5}),
        ({"a": 5, "0": 6}, (), {"a": 5, "0": 6}),
        ({"0": 5}, [], [5]),
        ({"a": 5}, [1, 2], {"a": 5}),
    ],
)
def test_a_begun_value_has_the_other_entries_of_its_default(
    written: Any, default: Any, expected: Any
) -> None:
    assert value(written, default, KEY) == expected
    # What is written as a whole stays as it is.
    assert value(written, default) == written


def test_default_is_used_only_as_deep_as_overrides_began() -> None:
    default = {"a": [1, 2], "b": {"c": 3, "d": 4}}
    written = {"a": {"0": 7}, "b": {"c": 8}}
    assert value(written, default, KEY, (*KEY, "a"), (*KEY, "b")) == {"a": [7, 2], "b": {"c": 8, "d": 4}}
    assert value(written, default, KEY, (*KEY, "a")) == {"a": [7, 2], "b": {"c": 8}}
    assert value(written, default, (*KEY, "a")) == {"a": [7], "b": {"c": 8}}


@pytest.mark.parametrize("name, others", [("3", {}), ("x", {"0": 4}), ("99999999999", {})])
def test_an_index_that_a_list_does_not_have_is_refused(name: str, others: dict[str, int]) -> None:
    with pytest.raises(NoEntry) as error:
        value({name: 5, **others}, [1, 2], KEY)
    assert error.value.key == (*KEY, name)
