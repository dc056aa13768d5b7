"""A first look at the data files of an experiment, before anything is started for it.

Imports nothing slow, for a login node takes it: the worker reads every row later.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from toolkit.config.kinds import TextTable
from toolkit.config.schema import Experiment
from toolkit.data.table import read_rows

#: Rows of each file that are looked at: some ten milliseconds.
_ROWS = 2000


def glance(experiment: Experiment) -> None:
    """Raise DataError where the first rows of a data file cannot be read as described."""
    data = experiment.data
    if not isinstance(data, TextTable):
        return
    for name in (data.path, data.train, data.validation, data.test):
        if name is not None:
            for _ in islice(read_rows(Path(name).expanduser(), data), _ROWS):
                pass
