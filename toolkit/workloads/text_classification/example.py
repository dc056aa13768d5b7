"""A small experiment on generated texts."""

from __future__ import annotations

import json
import random
from pathlib import Path

from toolkit.files import write_atomic

_EXPERIMENT = """\
name: example
task: {kind: text_classification}
model: {kind: docnn, embedding_dim: 16, filters: 16, dropout: 0.3}
data: {path: TABLE, prepared_dir: PREPARED}
train: {epochs: 40, batch_size: 16, eval_per_epoch: 1}
"""
_WORDS = {"good": ("fine", "bright", "warm"), "bad": ("dull", "poor", "cold")}


def write_example(folder: Path) -> Path:
    """Write texts and an experiment on them into a folder; return the experiment's file."""
    write_atomic(folder / "texts.tsv", "\n".join(["text\tlabel", *_rows()]) + "\n")
    path = folder / "example.yaml"
    # As a JSON string the path is valid YAML, even with special characters in it.
    table, prepared = json.dumps(str(folder / "texts.tsv")), json.dumps(str(folder / "prepared"))
    write_atomic(path, _EXPERIMENT.replace("TABLE", table).replace("PREPARED", prepared))
    return path


def _rows() -> list[str]:
    choice = random.Random(0)
    rows = []
    for number in range(400):
        label = choice.choice(list(_WORDS))
        filler = [f"word{choice.randrange(80)}" for _ in range(choice.randrange(2, 12))]
        rows.append(" ".join([*filler, choice.choice(_WORDS[label]), f"text{number}"]) + f"\t{label}")
    return rows
