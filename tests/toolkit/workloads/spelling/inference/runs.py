"""The test texts of finished runs."""

from __future__ import annotations

from tests.toolkit.support.tiny import query
from toolkit.config import load_resolved
from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.data.samples.prepared import prepare


def texts_of_test(run: RunDir) -> list[str]:
    """Return the texts of a run's test set, with their errors."""
    data = prepare(load_resolved(run.config).data)
    statement = "SELECT text FROM samples WHERE split = 'test' ORDER BY sample_id"
    return [text for (text,) in query(data, statement)]
