"""Tables of films, and helpers for their prepared sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from toolkit.errors import DataError
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.samples import Samples
from toolkit.workloads.text_classification.data.sources.formats.file_kinds import read_rows
from toolkit.workloads.text_classification.data.sources.formats.table import Row

ADJECTIVES = ("good", "bad", "dull", "bright", "slow", "warm", "thin")


def some_rows(n: int) -> list[tuple[str, str]]:
    """Texts of one to six words, each with a unique word."""
    return [
        (f"{' '.join(ADJECTIVES[: i % 6])} film{i}".strip(), "positive" if i % 3 else "negative")
        for i in range(n)
    ]


def write_table(path: Path, rows: list[tuple[str, str]]) -> str:
    path.write_text("".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *rows]))
    return str(path)


def read(path: Path, content: bytes | str | None = None, data: TextTable | None = None) -> list[Row]:
    """The rows of a file, into which this content is written first if it is given."""
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_rows(path, data or TextTable()))


def fault(path: Path, content: bytes | str | None = None, data: TextTable | None = None) -> str:
    """Why such a file is refused."""
    with pytest.raises(DataError) as caught:
        read(path, content, data)
    return str(caught.value)


def left_over(data: TextTable) -> list[str]:
    """The entries of the folder of prepared sets, without lock files and digests."""
    store = Path(data.prepared_dir)
    entries = sorted(store.iterdir()) if store.exists() else []
    return [entry.name for entry in entries if entry.suffix != ".lock" and entry.name != ".digests"]


def tokens_of(samples: Samples, index: int) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Tokens of one sample, [length]."""
    start, end = samples.tokens.offsets[samples.ids[index] : samples.ids[index] + 2]
    return samples.tokens.values[start:end]
