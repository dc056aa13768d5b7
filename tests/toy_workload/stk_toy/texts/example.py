"""A small experiment on made-up texts."""

from __future__ import annotations

import json
from pathlib import Path

_EXPERIMENT = """\
name: example
task: {kind: toy_texts}
model: {kind: convolutions, embedding_dim: 16, filters: 16, dropout: 0.3}
data: {path: TABLE, prepared_dir: PREPARED}
train: {epochs: 40, batch_size: 16, eval_per_epoch: 1}
"""
_WORDS = {"good": ("fine", "bright", "warm"), "bad": ("dull", "poor", "cold")}


def write_example(folder: Path) -> Path:
    """Write texts and an experiment on them into a folder; return the experiment's file."""
    (folder / "texts.tsv").write_text("\n".join(["text\tlabel", *_rows()]) + "\n")
    path = folder / "example.yaml"
    # As a JSON string the path is valid YAML, even with special characters in it.
    table, prepared = (json.dumps(str(folder / name)) for name in ("texts.tsv", "prepared"))
    path.write_text(_EXPERIMENT.replace("TABLE", table).replace("PREPARED", prepared))
    return path


def _rows() -> list[str]:
    rows = []
    for number in range(400):
        label = ("good", "bad")[number % 2]
        fillers = [f"word{number * place % 83}" for place in range(2 + number % 11)]
        rows.append(" ".join([*fillers, _WORDS[label][number % 3], f"text{number}"]) + f"\t{label}")
    return rows
