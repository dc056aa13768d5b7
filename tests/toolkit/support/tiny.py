"""A tiny experiment on a made-up table: nothing in it divides evenly."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from toolkit.config import Experiment, load
from toolkit.files import read_json, read_json_lines
from toolkit.run.run_dir import RunDir

#: Samples of each split: with steps of 8 samples training ends in an incomplete step of 5, which
#: leaves micro-batches empty.
SIZES = {"train": 61, "validation": 23, "test": 11}
STEPS_PER_EPOCH = 8

_WORDS = {"good": ("fine", "warm", "bright"), "bad": ("dull", "thin", "slow")}
_FILLERS = ("film", "plot", "scene", "a", "the", "of", "story")

#: What a line of metrics.jsonl may say differently in two equal runs.
_TIMES = ("time", "samples_per_s", "tokens_per_s")

EXPERIMENT = """\
name: tiny
task: {{kind: toy_texts}}
model:
  {{kind: convolutions, embedding_dim: 8, embedding_std: 0.5, kernels: [2, 3], filters: 6,
    dropout: 0.3, embedding_dropout: 0.1}}
data:
  train: {folder}/train.tsv
  validation: {folder}/validation.tsv
  test: {folder}/test.tsv
  prepared_dir: {folder}/prepared
train: {{epochs: 2, batch_size: 8, bucket_batches: 3, log_per_epoch: 3, eval_per_epoch: 2, device: cpu}}
optimizer: {{lr: 0.05}}
lr_scheduler: {{warmup: 0.2}}
evaluation: {{batch_size: 5}}
"""


def rows(split: str) -> Iterator[tuple[str, str]]:
    """Texts of one to fourteen words, each split with its own."""
    offset = sorted(SIZES).index(split) * 1000
    for number in range(offset, offset + SIZES[split]):
        label = ("good", "bad")[number % 2]
        words = [_WORDS[label][number % 3], *(_FILLERS[(number + i) % 7] for i in range(number * 5 % 13))]
        yield f"{' '.join(words)} no{number}", label


def of_tokens(budget: int, span: int | None) -> tuple[str, ...]:
    """Overrides that make steps and evaluations of so many tokens, in place of samples."""
    return (
        "train.batch_size=null",
        "train.bucket_batches=null",
        f"train.batch_max_length={budget}",
        f"train.bucket_span={'null' if span is None else span}",
        "evaluation.batch_size=null",
        f"evaluation.batch_max_length={budget}",
    )


def write_experiment(folder: Path, text: str = EXPERIMENT) -> Path:
    """Write the tables and the experiment file into a folder; returns the file.

    text   of the experiment, with {folder} in the place of the folder
    """
    folder.mkdir(parents=True, exist_ok=True)
    for split in SIZES:
        lines = ["text\tlabel", *("\t".join(row) for row in rows(split))]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = folder / "tiny.yaml"
    path.write_text(text.format(folder=folder), encoding="utf-8")
    return path


def tiny(folder: Path, *overrides: str) -> Experiment:
    """The tiny experiment with its data in a folder."""
    return load(write_experiment(folder), overrides)


def prepared(experiment: Experiment) -> Experiment:
    """An experiment whose data are prepared."""
    from toolkit.task import task_class  # imports torch

    task_class(experiment).prepare(experiment)
    return experiment


def metrics_lines(run: RunDir) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl without what depends on the clock."""
    return [
        {name: value for name, value in line.items() if name not in _TIMES}
        for line in read_json_lines(run.metrics)
    ]


def events(run: RunDir, *names: str) -> list[dict[str, Any]]:
    """The events of these names, oldest first."""
    return [line for line in read_json_lines(run.events) if line["event"] in names]


def contents(run: RunDir) -> dict[str, Any]:
    """All that two equal runs have in common, byte for byte."""
    last = run.last.resolve()
    result = read_json(run.result) or {}
    scores = {split: {**values} for split, values in result.get("metrics", {}).items()}
    for name in _TIMES:
        scores.get("train", {}).pop(name, None)
    return {
        "last": last.name,
        "checkpoint": {
            file.name: file.read_bytes() for file in sorted(last.iterdir()) if file.name != "MANIFEST.json"
        },
        "metrics": metrics_lines(run),
        "result": {**result, "metrics": scores, "attempts": None, "seconds": None},
        "artifacts": {
            str(file.relative_to(run.artifacts)): file.read_bytes()
            for file in sorted(run.artifacts.rglob("*"))
            if file.is_file()
        },
    }


def assert_equal_runs(run: RunDir, other: RunDir) -> None:
    """Two runs have the same weights, training state, metrics, scores and predictions, to the byte."""
    found, expected = contents(run), contents(other)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        # Not the values themselves: pytest would print the difference of megabytes.
        assert json.dumps(found[name], default=repr) == json.dumps(value, default=repr), f"{name} differs"


def query(prepared: Any, statement: str) -> list[Any]:
    """What the database of a prepared set answers."""
    with closing(sqlite3.connect(prepared.database)) as connection:
        return connection.execute(statement).fetchall()
