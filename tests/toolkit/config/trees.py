"""Trees of an experiment, as YAML gives them, with a key changed."""

from __future__ import annotations

import copy
from typing import Any

#: The plain tree of a good experiment.
GOOD: dict[str, Any] = {
    "name": "movies",
    "task": {"kind": "toy_texts"},
    "model": {"kind": "convolutions"},
    "data": {"path": "/data/movie_reviews.tsv"},
}


def put(tree: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy of the tree with one key set."""
    tree = copy.deepcopy(tree)
    *above, last = key.split(".")
    section = tree
    for part in above:
        section = section.setdefault(part, {})
    section[last] = value
    return tree
