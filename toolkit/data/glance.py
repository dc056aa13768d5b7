"""A first look at the data files of an experiment, before anything is started for it.

Imports nothing slow, for a login node takes it: the worker reads every row later.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from toolkit.config.kinds import TextTable
from toolkit.config.schema import Experiment
from toolkit.data.hub import pretrained_file
from toolkit.data.labels import Skipped, count_empty, nothing_known, refuse_unknown
from toolkit.data.table import read_rows

#: Rows of each file that are looked at: some ten milliseconds.
_ROWS = 2000


def glance(experiment: Experiment) -> None:
    """Raise DataError where the first rows of a data file, or a tokenizer, cannot be read as described."""
    data = experiment.data
    if not isinstance(data, TextTable):
        return
    for name in (data.path, data.train, data.validation, data.test):
        if name is not None:
            _look(Path(name).expanduser(), data)
    if data.tokenizer == "pretrained" and data.tokenizer_path and os.path.isdir(data.tokenizer_path):
        # A name on a hub is left to the worker: asking takes long, and compute nodes may see another cache.
        pretrained_file(data.tokenizer_path, "tokenizer.json")


def _look(path: Path, data: TextTable) -> None:
    skipped, used = Skipped(), 0
    rows = list(islice(read_rows(path, data), _ROWS))
    for row in rows:
        if count_empty(path, row, data, skipped):
            continue
        if data.labels is None or row.label in data.labels:
            used += 1
        elif data.unknown_labels == "refuse":
            raise refuse_unknown(f"{path}:{row.line}", row.label, data.labels)
        else:
            skipped.unknown(row.label, f"{path}:{row.line}")
    if not used and len(rows) < _ROWS:
        raise nothing_known(path, data, data.labels or (), skipped)
