"""Results of the function `predict`, as a JSON value for each sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from toolkit.data.ragged import Lists
from toolkit.errors import UserError
from toolkit.task import Ragged
from toolkit.workloads.custom.functions.reading.signatures import EXAMPLES


def values_of(lists: Lists, *, are_lists: bool) -> Iterator[Any]:
    """Yield the value, or the list of values, of each sample.

    are_lists  whether a single value is a list, too
    """
    for each in lists:
        found = each.tolist()
        yield found if are_lists or len(found) != 1 else found[0]


def checked_predictions(found: Any, samples: int, place: str) -> torch.Tensor | Ragged:
    """Return the result of `predict`, as tensors. Raises UserError unless each sample has a value or row.

    place   file and line of `predict`
    """
    found = _of_list(found) if isinstance(found, list | tuple) else found
    rows = found.rows if isinstance(found, Ragged) else found
    if isinstance(rows, torch.Tensor) and rows.ndim > 0:
        if len(rows) == samples:
            return found  # type: ignore[no-any-return]
        what = f"{len(rows)} values or rows"
    else:
        what = type(found).__name__
    raise UserError(
        f"{place}: predict returned {what}, expected a tensor with a value, or a row of values, for each of "
        f"{samples} samples, as in {EXAMPLES['predict']}, or a list of rows that differ in length"
    )


def _of_list(found: Sequence[Any]) -> Any:
    """Return a list of numbers as a tensor, and a list of rows as Ragged. Other lists stay unchanged."""
    try:
        rows = [
            each if isinstance(each, torch.Tensor) else torch.as_tensor(np.asarray(each)) for each in found
        ]
    except (TypeError, ValueError):
        return found
    dimensions = {row.ndim for row in rows}
    if dimensions not in ({0}, {1}):
        return found
    # numpy makes an empty list one of floats.
    types = [row.dtype for row in rows if row.numel()] or [rows[0].dtype]
    common = reduce(torch.promote_types, types)
    rows = [row.to(common) for row in rows]
    if dimensions == {0}:
        return torch.stack(rows)
    lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
    return Ragged(rows=pad_sequence(rows, batch_first=True), lengths=lengths)
