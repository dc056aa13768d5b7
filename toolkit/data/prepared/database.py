"""The SQLite database of a prepared set: written once, then read by any number of processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from toolkit.data.prepared.manifest import PREPARE_AGAIN
from toolkit.errors import DataError

DATABASE = "samples.sqlite"

#: Tables for the scores of finished runs (results.py).
_RESULTS = """
CREATE TABLE results (
    run TEXT NOT NULL, split TEXT NOT NULL, finished TEXT NOT NULL, name TEXT NOT NULL, model TEXT NOT NULL,
    task TEXT NOT NULL, seed INTEGER NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL,
    PRIMARY KEY (run, split)
);
CREATE TABLE scores (
    run TEXT NOT NULL, split TEXT NOT NULL, metric TEXT NOT NULL, value REAL,
    PRIMARY KEY (run, split, metric)
);
"""

#: Well below the number of values that every SQLite version allows in one statement.
_IDS_PER_QUERY = 500


def new_database(folder: Path, schema: str) -> closing[sqlite3.Connection]:
    """Create the database in a folder that no other process uses yet, and begin its only transaction.

    schema  the tables for samples; tables for scores are added
    Raises sqlite3.Error.
    """
    # No locks, which network file systems may lack, and no journal.
    uri = f"{(folder / DATABASE).absolute().as_uri()}?mode=rwc&nolock=1"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    connection.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN; {schema} {_RESULTS}")
    return closing(connection)


def commit(connection: sqlite3.Connection, indices: str) -> None:
    """End the transaction of a new database, then make its indices. Raises sqlite3.Error."""
    connection.execute("COMMIT")
    connection.executescript(indices)


def read_only(database: Path) -> closing[sqlite3.Connection]:
    """Open a database for reading. Raises sqlite3.Error."""
    # Immutable: no lock is taken, so that many ranks may read over a network file system. A run that
    # records its results at the same time changes no page of the samples.
    return closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro&immutable=1", uri=True))


@contextmanager
def reading(database: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading. Raises DataError if it is damaged."""
    try:
        with read_only(database) as connection:
            yield connection
    except sqlite3.Error as error:
        raise DataError(f"{database} is damaged ({error}); {PREPARE_AGAIN}") from error


def rows_in(connection: sqlite3.Connection, query: str, ids: Sequence[int]) -> Iterator[Any]:
    """Yield the rows of a query with `IN ({places})` for these ids, in batches. Raises sqlite3.Error."""
    for first in range(0, len(ids), _IDS_PER_QUERY):
        some = ids[first : first + _IDS_PER_QUERY]
        yield from connection.execute(query.format(places=", ".join("?" * len(some))), some)
