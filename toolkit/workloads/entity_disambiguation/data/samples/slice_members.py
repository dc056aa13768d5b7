"""Find the members of slices: built slices, slices of the lines, and SQL conditions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolkit.data.prepared.database import read_only
from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.config import BUILT_SLICES, EntityMentions
from toolkit.workloads.entity_disambiguation.data.entities.slices import Bools
from toolkit.workloads.entity_disambiguation.data.samples.slice_conditions import located, matching


def members(
    database: Path, data: EntityMentions, labelled: dict[str, Bools], built: dict[str, Bools]
) -> npt.NDArray[np.uint8]:
    """The members of every slice of `data.eval_slices`, [n, slices]. Raises DataError.

    labelled  [n] members of each slice that is named in lines
    built     [n] members of the built slices
    """
    names, by_name = slice_names(data), {**labelled, **built}
    found = np.zeros((len(built[BUILT_SLICES[0]]), len(names)), np.uint8)
    for column, name in enumerate(names):
        if name in data.slices:
            condition = data.slices[name]
            with located(name, condition), read_only(database) as connection:
                found[np.fromiter(matching(connection, condition), np.int64), column] = 1
        elif name in by_name:
            found[:, column] = by_name[name]
        else:
            known = ", ".join([*BUILT_SLICES, *data.slices, *sorted(labelled)])
            raise DataError(
                f"data.eval_slices names {name!r}, but no line has a slice of that name, data.slices has no "
                f"condition for it, and it is not a built slice; known slices: {known}"
            )
    return found


def slice_names(data: EntityMentions) -> tuple[str, ...]:
    """The names of the scored slices, without duplicates."""
    return tuple(dict.fromkeys(data.eval_slices))
