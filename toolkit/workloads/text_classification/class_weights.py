"""The weights of the classes in the training loss (task.class_weights)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.config.faults import suggest
from toolkit.errors import UserError
from toolkit.workloads.text_classification.config import BALANCED


def class_weights(given: Any, labels: Sequence[str], codes: np.ndarray) -> np.ndarray | None:
    """Return the weights [C] of the classes; None without weights.

    given  the value of task.class_weights
    codes  the labels of the training samples [n]

    `balanced` gives class c the weight n / (C n_c), as in scikit-learn, so the mean over the training samples
    is 1. A class without samples gets 0. Raises UserError for a label that is not in the data.
    """
    if given is None:
        return None
    if given == BALANCED:
        counts = np.bincount(codes, minlength=len(labels))
        return np.where(counts > 0, len(codes) / (len(labels) * np.maximum(counts, 1)), 0.0).astype(
            np.float32
        )
    if unknown := next((label for label in given if label not in labels), None):
        raise UserError(
            f"task.class_weights names the label {unknown!r}, which the training set does not have "
            f"({suggest(unknown, labels) or ', '.join(labels[:10])})"
        )
    return np.array([given.get(label, 1.0) for label in labels], dtype=np.float32)
