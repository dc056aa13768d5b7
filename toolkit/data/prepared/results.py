"""The scores of finished runs, kept beside the data that they were trained on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from toolkit.data.prepared.database import DATABASE
from toolkit.data.prepared.manifest import META, PREPARE_AGAIN
from toolkit.errors import DataError
from toolkit.files import json_numbers, read_object

_WAIT_S = 60.0
_RESULT = "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a finished run.

    run       id of the run
    finished  time of its end, as ISO 8601 text
    metrics   values by split, then by name
    """

    run: str
    finished: str
    name: str
    model: str
    task: str
    seed: int
    step: int
    metrics: Mapping[str, Mapping[str, float]]


def record_result(prepared_path: Path, result: Result) -> str | None:
    """Write a run's scores into the tables `results` and `scores` of a prepared set.

    Earlier scores of the same run are replaced. Any number of runs may call this at once. Returns None,
    or why nothing was written, for example because the set is read-only: a run never fails for that.
    """
    database = prepared_path / DATABASE
    try:
        lock = prepared_path.parent / f".{prepared_path.name}.results.lock"
        with (
            FileLock(lock, timeout=_WAIT_S, mode=0o664),
            closing(
                sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", _WAIT_S, uri=True)
            ) as connection,
            connection,
        ):
            _replace(connection, result)
        return None
    except (OSError, sqlite3.Error, Timeout) as error:
        return f"results are not recorded in {database}: {error}"


def keeps_results(prepared_path: Path) -> bool:
    """Whether a prepared set has a database for scores, according to its manifest."""
    files = read_object(prepared_path / META).get("files")
    return not files or DATABASE in files


def holds_results(prepared_path: Path) -> bool:
    """Whether a database is intact and holds results of runs, so that it may differ from the built one.

    Raises DataError if SQLite finds it damaged.
    """
    database = prepared_path / DATABASE
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            (results,) = connection.execute("SELECT count(*) FROM results").fetchone()
    except sqlite3.Error as error:
        raise DataError(f"{database} is damaged ({error}); {PREPARE_AGAIN}") from error
    return bool(answer == "ok" and results)


def _replace(connection: sqlite3.Connection, result: Result) -> None:
    for table in ("results", "scores"):
        connection.execute(f"DELETE FROM {table} WHERE run = ?", [result.run])
    for split, metrics in result.metrics.items():
        row = [result.run, split, result.finished, result.name, result.model, result.task, result.seed]
        # SQL has no NaN either.
        numbers = json_numbers(metrics)
        connection.execute(_RESULT, [*row, result.step, json.dumps(numbers)])
        scores = [(result.run, split, metric, value) for metric, value in numbers.items()]
        connection.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?)", scores)
