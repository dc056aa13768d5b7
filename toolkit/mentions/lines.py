"""The lines of a split with what a model says of their mentions, one at a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.artifacts.dump import Line, Prediction
from toolkit.data.sealed import PREPARE_AGAIN
from toolkit.errors import DataError
from toolkit.mentions.samples import MentionSamples

_LINES = "SELECT id, record FROM sentences WHERE split = ? ORDER BY id"
_PLACES = "SELECT sentence, position FROM mentions WHERE split = ? ORDER BY sample_id"
_NAMES = "SELECT eid, qid FROM entities WHERE eid IN ({places})"
#: Samples whose candidates are looked up at once, and entities in one statement of SQL.
_SAMPLES, _NAMED = 256, 500


def predicted_lines(samples: MentionSamples, probabilities: npt.NDArray[np.floating[Any]]) -> Iterator[Line]:
    """Yield every line of the split in the order of its files, with a prediction for each of its aliases.

    probabilities  of the candidates of each sample, [n, width]; what fills a row up is not looked at
    Aliases that are no sample have None. Raises DataError where the database is damaged.
    """
    try:
        with samples.connected() as connection:
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
    except sqlite3.Error as error:
        raise DataError(f"{samples.database} is damaged ({error}); {PREPARE_AGAIN}") from error


def _predictions(
    samples: MentionSamples, probabilities: npt.NDArray[np.floating[Any]], connection: sqlite3.Connection
) -> Iterator[Prediction]:
    """Yield the prediction of each sample."""
    for first in range(0, len(samples), _SAMPLES):
        indices = np.arange(first, min(first + _SAMPLES, len(samples)))
        entities = samples.candidates(indices)
        names = _names(connection, np.unique(entities[entities >= 0]).tolist())
        for row, shares in zip(entities, probabilities[indices].astype(np.float64), strict=True):
            is_there = row >= 0
            # They sum to 1 in 32 bits.
            kept = shares[is_there] / shares[is_there].sum()
            yield Prediction.of([names[entity] for entity in row[is_there].tolist()], kept.tolist())


def _names(connection: sqlite3.Connection, entities: list[int]) -> dict[int, str]:
    """Ids of entities by their numbers."""
    names: dict[int, str] = {}
    for first in range(0, len(entities), _NAMED):
        some = entities[first : first + _NAMED]
        names.update(connection.execute(_NAMES.format(places=", ".join("?" * len(some))), some))
    return names
