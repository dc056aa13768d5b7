"""Results of the function `predict` for each sample, as values that JSON can hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from toolkit.data.ragged import Lists
from toolkit.errors import UserError
from toolkit.task import Ragged
from toolkit.workloads.custom.functions.reading.signatures import EXAMPLES


def values_of(lists: Lists) -> Iterator[Any]:
    """The value of each sample, where it has one, else the list of its values."""
    for each in lists:
        found = each.tolist()
        yield found[0] if len(found) == 1 else found


def checked_predictions(found: Any, samples: int, place: str) -> torch.Tensor | Ragged:
    """What `predict` returned. Raises UserError where it has not a value, or a row, for each sample.

    place   file and line of `predict`
    """
    rows = found.rows if isinstance(found, Ragged) else found
    if isinstance(rows, torch.Tensor) and rows.ndim > 0:
        if len(rows) == samples:
            return found  # type: ignore[no-any-return]
        what = f"{len(rows)} values or rows"
    else:
        what = type(found).__name__
    raise UserError(
        f"{place}: predict returned {what}, expected a tensor with a value, or a row of values, for each of "
        f"{samples} samples, as in {EXAMPLES['predict']}"
    )
