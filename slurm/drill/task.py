"""The experiment of a drill: the user's own, or a tiny one that needs no data."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

from toolkit.config import load
from toolkit.config.schema import Experiment
from toolkit.files import write_atomic

#: Steps between two saves, and between two interruptions.
STRIDE = 4

_EXPERIMENT = """\
name: drill
task: {kind: text_classification}
model: {kind: docnn, embedding_dim: 16, filters: 16, dropout: 0.3}
data: {path: TABLE, prepared_dir: PREPARED}
train: {epochs: 40, batch_size: 16, eval_per_epoch: 1}
"""
_WORDS = {"good": ("fine", "bright", "warm"), "bad": ("dull", "poor", "cold")}


def drill_experiment(
    config: Path | None, overrides: Sequence[str], folder: Path, interruptions: int
) -> Experiment:
    """The experiment, long enough for so many interruptions, and saved often. Raises ConfigError.

    Only what does not matter for a comparison is changed: a drill ends it long before its last epoch.
    """
    path = config or _tiny_experiment(folder)
    steps = STRIDE * (interruptions + 2)
    own = load(path, overrides)
    return load(
        path,
        [
            *overrides,
            f"train.epochs={max(own.train.epochs, steps)}",
            "evaluation.patience=null",
            f"checkpoint.every_steps={STRIDE}",
            f"checkpoint.keep={interruptions + 8}",
            # What is done on purpose is no news.
            "resources.webhook_env=null",
        ],
    )


def _tiny_experiment(folder: Path) -> Path:
    """Write a table of made-up texts and an experiment on it; return the experiment's file."""
    choice = random.Random(0)
    rows = ["text\tlabel"]
    for number in range(400):
        label = choice.choice(list(_WORDS))
        filler = [f"word{choice.randrange(80)}" for _ in range(choice.randrange(2, 12))]
        rows.append(" ".join([*filler, choice.choice(_WORDS[label]), f"text{number}"]) + f"\t{label}")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "texts.tsv", "\n".join(rows) + "\n")
    path = folder / "drill.yaml"
    # A JSON string is YAML, whatever the path holds.
    table, prepared = json.dumps(str(folder / "texts.tsv")), json.dumps(str(folder / "prepared"))
    write_atomic(path, _EXPERIMENT.replace("TABLE", table).replace("PREPARED", prepared))
    return path
