"""Sentences as they came in, each with a model's predictions for its mentions: JSON lines, one at a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from toolkit.data.prepared.database import reading, rows_in
from toolkit.workloads.entity_disambiguation.data.entities.jsonlines import write_lines
from toolkit.workloads.entity_disambiguation.data.samples.samples import MentionSamples

#: Digits of a probability: as many as are exact in 32-bit arithmetic.
_DIGITS = 7
_LINES = "SELECT id, record FROM sentences WHERE split = ? ORDER BY id"
_PLACES = "SELECT sentence, position FROM mentions WHERE split = ? ORDER BY sample_id"
_NAMES = "SELECT eid, qid FROM entities WHERE eid IN ({places})"
#: Samples whose candidates are looked up at once.
_SAMPLES = 256

#: The prediction of a mention, as JSON.
Prediction: TypeAlias = dict[str, Any]
#: An input line, and the prediction of each of its aliases; None for a mention that was not predicted.
Line = tuple[Mapping[str, Any], Sequence[Prediction | None]]


def write_dump(path: Path, lines: Iterable[Line]) -> None:
    """Write each line's own keys unchanged and `predictions`, parallel to its aliases.

    Lines keep their order; predictions of an earlier dump are replaced; the file appears when it is whole.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_lines(path, ({**record, "predictions": predictions} for record, predictions in lines))


def predicted_lines(samples: MentionSamples, probabilities: npt.NDArray[np.floating[Any]]) -> Iterator[Line]:
    """Yield every line of the split in the order of its files, with a prediction for each of its aliases.

    probabilities  of the candidates of each sample, [n, width]; what fills a row up is not looked at
    Aliases that are not samples have None. Raises DataError where the database is damaged.
    """
    with reading(samples.database) as connection:
        said = zip(
            connection.execute(_PLACES, [samples.split]),
            _predictions(samples, probabilities, connection),
            strict=True,
        )
        of_sentence = groupby(said, key=lambda pair: pair[0][0])
        number, found = next(of_sentence, (None, iter(())))
        for sentence, record in connection.execute(_LINES, [samples.split]):
            line = json.loads(record)
            parallel: list[Prediction | None] = [None] * len(line["aliases"])
            if sentence == number:
                for (_, position), prediction in found:
                    parallel[position] = prediction
                number, found = next(of_sentence, (None, iter(())))
            yield line, parallel


def _predictions(
    samples: MentionSamples, probabilities: npt.NDArray[np.floating[Any]], connection: sqlite3.Connection
) -> Iterator[Prediction]:
    """Yield the prediction of each sample."""
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
    """The prediction of a mention: its candidates, and the likeliest one, the first of equals.

    entities       numbers of its candidates, [width]; -1 fills up
    probabilities  of each of them, [width]
    names          entity ids, by number
    """
    is_there = entities >= 0
    candidates = [names[entity] for entity in entities[is_there].tolist()]
    shares = probabilities[is_there].astype(np.float64)
    # They sum to 1 in 32 bits.
    whole: list[float] = (shares / shares.sum()).tolist()
    likeliest = max(range(len(candidates)), key=whole.__getitem__)
    rounded = [round(value, _DIGITS) for value in whole]
    return {
        "qid": candidates[likeliest],
        "probability": rounded[likeliest],
        "candidates": candidates,
        "probabilities": rounded,
    }
