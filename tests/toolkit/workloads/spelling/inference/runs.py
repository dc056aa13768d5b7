"""The test texts of finished runs."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from toolkit.config import load_resolved
from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.data.samples.prepared import prepare


def texts_of_test(run: RunDir) -> list[str]:
    """Return the texts of a run's test set, with their errors."""
    data = prepare(load_resolved(run.config).data)
    with closing(sqlite3.connect(data.path / "samples.sqlite")) as connection:
        rows = connection.execute("SELECT text FROM samples WHERE split = 'test' ORDER BY sample_id")
        return [text for (text,) in rows]
