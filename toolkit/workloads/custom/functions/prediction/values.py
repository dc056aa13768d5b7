"""Results of the function `predict` for each sample, as values that JSON can hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolkit.data.ragged import Lists


def values_of(lists: Lists) -> Iterator[Any]:
    """The value of each sample, where it has one, else the list of its values."""
    for each in lists:
        found = each.tolist()
        yield found[0] if len(found) == 1 else found
