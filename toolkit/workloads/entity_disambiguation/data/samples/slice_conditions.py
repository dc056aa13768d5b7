"""SQL conditions of slices, on the table of mentions. Imports no numpy, which takes time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.data.samples import layout

#: Allowed actions of a condition, besides reading the table of mentions.
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION)
_TABLE = "mentions"


def check_condition(name: str, condition: str) -> None:
    """Raise DataError if a condition cannot be evaluated even without mentions."""
    with located(name, condition), closing(_no_mentions()) as connection:
        list(matching(connection, condition))


def matching(connection: sqlite3.Connection, condition: str) -> Iterator[Any]:
    """Yield the samples that fulfil a condition. Raises sqlite3.Error, sqlite3.Warning, ValueError."""
    connection.set_authorizer(_authorize)
    rows = connection.execute(f"SELECT sample_id FROM {_TABLE} WHERE ({condition}\n)")
    return (row[0] for row in rows)


@contextmanager
def located(name: str, condition: str) -> Iterator[None]:
    """Raise DataError with the condition if it cannot be evaluated."""
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning, IndexError, TypeError, ValueError) as error:
        with closing(_no_mentions()) as connection:
            columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({_TABLE})"))
        raise DataError(
            f"data.slices.{name}: the condition {condition!r} cannot be evaluated ({error}); expected an SQL "
            f"expression over the columns of the table {_TABLE}: {columns}"
        ) from error


def _no_mentions() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(layout.SCHEMA + layout.INDICES)
    return connection


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
