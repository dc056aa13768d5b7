"""A first look at the data files of an experiment, before anything is started for it.

Imports nothing slow, for a login node takes it: the worker reads every row later.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from toolkit.config.kinds import Pretrained, SpellingTexts, TextTable
from toolkit.config.schema import Experiment
from toolkit.data.hub import no_model, pretrained_file
from toolkit.data.labels import Skipped, count_empty, nothing_known, refuse_unknown
from toolkit.data.named_files import check_named_files
from toolkit.data.table import read_rows
from toolkit.earlier import check_earlier

#: Rows of each file that are looked at: some ten milliseconds.
_ROWS = 2000
#: Keys of files of which a prepared set of texts keeps copies.
_KEPT = ("tokenizer_path", "output_tokenizer_path", "dictionary")


def glance(
    experiment: Experiment, *, is_trained: bool = False, coming: Mapping[Path, Experiment] | None = None
) -> None:
    """Raise DataError where first rows of a data file cannot be read as described, or a file is missing.

    So where what earlier runs are to give is.
    coming       runs by their folders, which will have finished when this one begins
    is_trained   a model is there, so what its run began with is no matter any more, and what encodes texts
                 was kept with its prepared data
    """
    if not is_trained:
        check_earlier(experiment, coming)
    data = experiment.data
    if isinstance(data, SpellingTexts):
        check_named_files(data, besides=_KEPT if is_trained else ())
    if not isinstance(data, TextTable):
        return
    for name in (data.path, data.train, data.validation, data.test):
        if name is not None:
            _look(Path(name).expanduser(), data)
    if data.tokenizer == "pretrained" and data.tokenizer_path is not None:
        _look_into(data.tokenizer_path, "tokenizer.json")
    if isinstance(experiment.model, Pretrained):
        _look_into(experiment.model.path, "config.json")


def _look_into(folder: str, name: str) -> None:
    """Raise DataError unless a pretrained model's folder holds a file.

    A name on a hub is left to the worker: asking takes long, and compute nodes may see another cache.
    """
    if os.path.isdir(folder):
        pretrained_file(folder, name)
    elif os.path.isabs(folder):
        raise no_model(folder, FileNotFoundError())


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
