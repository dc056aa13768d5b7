"""The wrong predictions with the highest probabilities, from <split>_predictions.tsv."""

from __future__ import annotations

import csv
import heapq
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import DataError
from toolkit.report.formats import clean
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.files import ClassificationFiles

_LONGEST_FIELD = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One wrong prediction.

    confidence          the model's probability of its prediction
    target_probability  its probability of the true label; None if unknown
    """

    row_index: str
    text: str
    target: str
    prediction: str
    confidence: float
    target_probability: float | None


def worst_mistakes(run: RunDir, split: str, labels: Sequence[str], limit: int = 20) -> list[Mistake]:
    """Return the most confident wrong predictions, highest confidence first.

    labels  in the order of the log-probabilities
    The file is not read into memory as a whole. Raises DataError if it is not a table of predictions.
    """
    path = ClassificationFiles(run).predictions(split)
    try:
        return heapq.nlargest(limit, _mistakes(path, labels), key=lambda mistake: mistake.confidence)
    except (csv.Error, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"{path} is not a table of predictions ({error!r}); expected tab-separated columns "
            "prediction, target, score, row_index, text"
        ) from error


def _mistakes(path: Path, labels: Sequence[str]) -> Iterator[Mistake]:
    # By default, csv refuses fields of more than 128 Ki characters.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    positions = {label: position for position, label in enumerate(labels)}
    with open(path, encoding="utf-8", newline="\n") as stream:
        # Cleaned before parsing: the csv module writes a bare carriage return without quotes, but reads it as
        # a line end.
        for row in csv.DictReader(map(clean, stream), delimiter="\t"):
            if row["prediction"] == row["target"]:
                continue
            # The prediction is the likeliest label.
            scores, target = json.loads(row["score"]), positions.get(row["target"])
            yield Mistake(
                row_index=row["row_index"] or "",
                text=row["text"] or "",
                target=row["target"],
                prediction=row["prediction"],
                confidence=math.exp(max(scores)),
                target_probability=None if target is None else math.exp(scores[target]),
            )
