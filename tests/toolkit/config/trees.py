"""Trees of an experiment, as YAML gives them, with a key changed."""

from __future__ import annotations

import copy
from typing import Any


def put(tree: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy of the tree with one key set."""
    tree = copy.deepcopy(tree)
    *above, last = key.split(".")
    section = tree
    for part in above:
        section = section.setdefault(part, {})
    section[last] = value
    return tree
