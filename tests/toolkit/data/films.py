"""Tables of films, and what becomes of them in the store of prepared sets."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from toolkit.config.kinds import TextTable
from toolkit.data.prepared import Prepared

ADJECTIVES = ("good", "bad", "dull", "bright", "slow", "warm", "thin")


def some_rows(n: int) -> list[tuple[str, str]]:
    """Texts of one to six words, each with a word of its own."""
    return [
        (f"{' '.join(ADJECTIVES[: i % 6])} film{i}".strip(), "positive" if i % 3 else "negative")
        for i in range(n)
    ]


def write_table(path: Path, rows: list[tuple[str, str]]) -> str:
    path.write_text("".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *rows]))
    return str(path)


def left_over(data: TextTable) -> list[str]:
    """What lies in the store besides lock files."""
    store = Path(data.prepared_dir)
    return (
        sorted(entry.name for entry in store.iterdir() if entry.suffix != ".lock") if store.exists() else []
    )


def query(prepared: Prepared, statement: str) -> list[Any]:
    connection = sqlite3.connect(prepared.path / "samples.sqlite")
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()
