"""Predictions for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolkit.workloads.text_classification.artifacts.predictions import Predictions, samples_per_text


def predictions(
    probabilities: Sequence[Sequence[float]],
    truth: Sequence[int],
    *,
    split: str = "test",
    labels: tuple[str, ...] = ("ham", "spam"),
    text_ids: Sequence[int] | None = None,
) -> Predictions:
    """Predictions of samples whose ids begin at 100; each is one text unless text_ids are given."""
    rows = len(truth)
    ids = np.arange(50, 50 + rows) if text_ids is None else np.array(text_ids)
    return Predictions(
        split=split,
        labels=labels,
        truth=np.array(truth, dtype=np.int32),
        log_probabilities=np.log(np.array(probabilities, dtype=np.float32).reshape(rows, len(labels))),
        sample_ids=np.arange(100, 100 + rows),
        text_ids=ids,
        fragments=samples_per_text(ids),
    )


#: Three texts: of two fragments (wrong, right; together right), of one (right) and of two (both wrong).
FOLDED = predictions(
    [[0.6, 0.4], [0.1, 0.9], [0.8, 0.2], [0.9, 0.1], [0.7, 0.3]], [1, 1, 0, 1, 1], text_ids=[4, 4, 9, 7, 7]
)
