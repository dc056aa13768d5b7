"""Tables of films, and helpers for their prepared sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.samples import Samples

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


def left_over(data: TextTable) -> list[str]:
    """The entries of the folder of prepared sets, without lock files and digests."""
    store = Path(data.prepared_dir)
    entries = sorted(store.iterdir()) if store.exists() else []
    return [entry.name for entry in entries if entry.suffix != ".lock" and entry.name != ".digests"]


def tokens_of(samples: Samples, index: int) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Tokens of one sample, [length]."""
    start, end = samples.tokens.offsets[samples.ids[index] : samples.ids[index] + 2]
    return samples.tokens.values[start:end]
