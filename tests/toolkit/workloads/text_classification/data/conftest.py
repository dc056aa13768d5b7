"""Tables of films, prepared into a folder beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.workloads.text_classification.data.films import some_rows, write_table
from toolkit.workloads.text_classification.config import TextTable


@pytest.fixture
def table(tmp_path: Path) -> TextTable:
    """One file of 60 rows that is cut into splits."""
    return TextTable(
        path=write_table(tmp_path / "films.tsv", some_rows(60)), prepared_dir=str(tmp_path / "prepared")
    )


@pytest.fixture
def three_files(tmp_path: Path) -> TextTable:
    return TextTable(
        train=write_table(
            tmp_path / "train.tsv", [("a b a", "yes"), (" ", "no"), ("b c c c", "yes"), ("c", "no")]
        ),
        validation=write_table(tmp_path / "dev.tsv", [("a unseen", "no"), ("c", "yes")]),
        test=write_table(tmp_path / "test.tsv", [("a b c d e f", "no")]),
        max_tokens=5,
        prepared_dir=str(tmp_path / "prepared"),
    )
