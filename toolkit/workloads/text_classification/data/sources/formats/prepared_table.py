"""Read the database of a prepared set as a table of texts, labels and splits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolkit.data.prepared.database import read_only
from toolkit.data.prepared.manifest import META
from toolkit.data.sources.split_files import SPLITS
from toolkit.errors import DataError
from toolkit.files import read_json
from toolkit.workloads.text_classification.data.sources.formats.opening import open_problem
from toolkit.workloads.text_classification.data.sources.formats.table import Row

ENDING = ".sqlite"

_TEXTS = """
SELECT texts.line, texts.text, labels.name FROM texts JOIN labels ON labels.id = texts.label
WHERE ?1 IS NULL OR texts.split = ?1 ORDER BY texts.id
"""


def is_database(path: Path) -> bool:
    """Whether a file is the database of a prepared set, by its name."""
    return path.suffix.lower() == ENDING


def known_set(path: Path) -> Mapping[str, Any]:
    """Return the manifest of a database's prepared set. Raises DataError if it is not a set of texts."""
    try:
        path.stat()
        meta = read_json(path.parent / META)
    except (OSError, ValueError) as error:
        raise open_problem(path, error if isinstance(error, OSError) else OSError(str(error))) from error
    if not isinstance(meta, dict) or not {"fingerprint", "splits", "texts"} <= meta.keys():
        raise DataError(
            f"{path} is not the database of prepared texts: its folder has no {META} of such a set. Expected "
            "a table, or samples.sqlite in a folder that `stk prepare` made for text classification"
        )
    if (meta.get("settings") or {}).get("split_unit") == "fragment":
        raise DataError(
            f"{path}: its fragments were split instead of its texts (data.split_unit: fragment). Name the "
            "table that it was made of"
        )
    return meta


def training_splits(path: Path) -> Mapping[str, int]:
    """Return the splits of a database's prepared set, with their sizes.

    Raises DataError as `known_set` does, and if the set cannot be trained on.
    """
    splits: Mapping[str, int] = known_set(path)["splits"]
    if not all(splits.get(name) for name in SPLITS[:2]):
        raise DataError(
            f"{path} is of a set with the splits {', '.join(splits)}, expected {' and '.join(SPLITS[:2])}: a "
            "set that `stk evaluate` made holds only what was scored. Name the table that it was made of"
        )
    return splits


def read_texts(path: Path, split: str | None) -> Iterator[Row]:
    """Yield the texts of a split, or of all splits, one at a time. Raises DataError.

    Line numbers refer to the original table.
    """
    known_set(path)
    try:
        with read_only(path) as connection:
            for row in connection.execute(_TEXTS, (split,)):
                yield Row(*row)
    except sqlite3.Error as error:
        raise DataError(f"{path} is damaged, or is not the database of prepared texts: {error}") from error
