"""The files of a finished run of entity disambiguation: predictions for each line, scores of slices."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from toolkit.data.prepared.database import reading, rows_in
from toolkit.data.prepared.manifest import PREPARE_AGAIN
from toolkit.errors import DataError
from toolkit.files import open_atomic, write_json
from toolkit.run.run_dir import RunDir
from toolkit.system.output.csv_cells import harmless
from toolkit.workloads.entity_disambiguation.config import WHOLE_SLICE
from toolkit.workloads.entity_disambiguation.data.samples.samples import MentionSamples
from toolkit.workloads.entity_disambiguation.files import DisambiguationFiles
from toolkit.workloads.entity_disambiguation.metrics.slice_score import SHARES, SliceScore

#: Digits of a probability. More would not be exact in 32-bit arithmetic.
_DIGITS = 7
#: One row for each sample; also one for a line without samples, whose position is None.
_LINES = """
SELECT sentences.id, record, position FROM sentences LEFT JOIN mentions ON mentions.sentence = sentences.id
WHERE sentences.split = ? ORDER BY sentences.id, sample_id
"""
_COUNT = "SELECT count(*) FROM mentions WHERE split = ?"
_NAMES = "SELECT eid, qid FROM entities WHERE eid IN ({places})"
#: Number of samples per look-up of candidates.
_SAMPLES = 256

#: The prediction of a mention, as JSON.
Prediction: TypeAlias = dict[str, Any]


def predicted_lines(
    samples: MentionSamples, probabilities: npt.NDArray[np.floating[Any]]
) -> Iterator[dict[str, Any]]:
    """Yield every line of the split in the order of its files, with `predictions` for its aliases.

    probabilities  [n, width] of the candidates of each sample; padding of a row is ignored

    Other keys are unchanged. Aliases that are not samples have None as prediction. Raises DataError if the
    database is damaged.
    """
    with reading(samples.database) as connection:
        (count,) = connection.execute(_COUNT, [samples.split]).fetchone()
        if count != len(samples):
            found = f"{samples.database} has {count:,} mentions of {samples.split}, expected {len(samples):,}"
            raise DataError(f"{found}; {PREPARE_AGAIN}")
        predictions = _predictions(samples, probabilities, connection)
        rows = connection.execute(_LINES, [samples.split])
        for (_, record), of_line in groupby(rows, key=itemgetter(0, 1)):
            line = json.loads(record)
            parallel: list[Prediction | None] = [None] * len(line["aliases"])
            for *_, position in of_line:
                if position is not None:
                    parallel[position] = next(predictions)
            yield {**line, "predictions": parallel}


def _predictions(
    samples: MentionSamples, probabilities: npt.NDArray[np.floating[Any]], connection: sqlite3.Connection
) -> Iterator[Prediction]:
    for first in range(0, len(samples), _SAMPLES):
        indices = np.arange(first, min(first + _SAMPLES, len(samples)))
        entities = samples.candidates(indices)
        met = np.unique(entities[entities >= 0]).tolist()
        names: dict[int, str] = dict(rows_in(connection, _NAMES, met))
        for row, shares in zip(entities, probabilities[indices], strict=True):
            yield among(row, shares, names)


def among(
    entities: npt.NDArray[np.integer[Any]], probabilities: npt.NDArray[Any], names: Mapping[int, str]
) -> Prediction:
    """Return the prediction of a mention: its candidates and the most probable one, the first in a tie.

    entities       [width] numbers of its candidates, padded with -1
    probabilities  [width] of each candidate
    names          entity ids, by number
    """
    is_candidate = entities >= 0
    candidates = [names[entity] for entity in entities[is_candidate].tolist()]
    shares = probabilities[is_candidate].astype(np.float64)
    # The probabilities sum to 1 only within 32 bits.
    whole: list[float] = (shares / shares.sum()).tolist()
    likeliest = max(range(len(candidates)), key=whole.__getitem__)
    rounded = [round(value, _DIGITS) for value in whole]
    return {
        "qid": candidates[likeliest],
        "probability": rounded[likeliest],
        "candidates": candidates,
        "probabilities": rounded,
    }


#: Bootleg's columns: NC is the class for "no candidate", boot the model, pop the most popular candidate.
_COLUMNS = (
    "task", "dataset", "split", "slice", "mentions", "mentions_notNC",
    "acc_boot", "acc_boot_notNC", "acc_pop", "acc_pop_notNC",
)  # fmt: skip
_TASK = "NED"


def write_slices(
    run: RunDir, split: str, scores: Mapping[str, SliceScore], *, dataset: str, no_candidate: bool = False
) -> None:
    """Write `<split>_disambig_metrics.csv`, sorted by slice, and `<split>_slices.json`, in the given order.

    dataset       the data file's name without its suffix
    no_candidate  whether the model has a class for mentions with a gold that is not a candidate
    """
    assert WHOLE_SLICE in scores, "the slice of all mentions always exists"
    run.artifacts.mkdir(parents=True, exist_ok=True)
    with open_atomic(DisambiguationFiles(run).disambig_metrics(split)) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for name, of in sorted(scores.items()):
            numbers = (getattr(of, column) for column in ("mentions", "mentions_not_nc", *SHARES))
            writer.writerow(harmless([_TASK, dataset, split, name, *numbers]))
    slices = [{"name": name, **of.to_json()} for name, of in scores.items()]
    head = {"split": split, "dataset": dataset, "no_candidate": no_candidate}
    write_json(DisambiguationFiles(run).slices(split), {**head, "slices": slices})
