"""Find the members of slices: built slices, slices of the lines, and SQL conditions."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.data.prepared.database import read_only
from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.config import BUILT_SLICES, EntityMentions
from toolkit.workloads.entity_disambiguation.data.entities.slices import Bools
from toolkit.workloads.entity_disambiguation.data.samples import layout

#: Allowed actions of a condition, besides reading the table of mentions.
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION)
_TABLE = "mentions"


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
            found[:, column] = where(database, name, data.slices[name], len(found))
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


def where(database: Path, name: str, condition: str, count: int) -> Bools:
    """Whether each mention, [count], fulfils an SQL condition. Raises DataError with the condition."""
    found = np.zeros(count, dtype=bool)
    try:
        with read_only(database) as connection:
            connection.set_authorizer(_authorize)
            rows = connection.execute(f"SELECT sample_id FROM {_TABLE} WHERE ({condition}\n)")
            found[np.fromiter((row[0] for row in rows), dtype=np.int64)] = True
    except (sqlite3.Error, sqlite3.Warning, IndexError, TypeError, ValueError) as error:
        raise DataError(
            f"data.slices.{name}: the condition {condition!r} cannot be evaluated ({error}); expected an SQL "
            f"expression over the columns of the table {_TABLE}: {', '.join(_column_names())}"
        ) from error
    return found


def _authorize(action: int, first: str | None, second: str | None, *_: Any) -> int:
    reads = action == sqlite3.SQLITE_READ and first == _TABLE
    # Functions that load code or access files are not allowed.
    harmless = action in _ALLOWED and second not in (
        "load_extension",
        "readfile",
        "writefile",
        "fts3_tokenizer",
    )
    return sqlite3.SQLITE_OK if reads or harmless else sqlite3.SQLITE_DENY


def _column_names() -> list[str]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(layout.SCHEMA)
        return [row[1] for row in connection.execute(f"PRAGMA table_info({_TABLE})")]
