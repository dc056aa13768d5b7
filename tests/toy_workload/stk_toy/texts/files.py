"""The files that a run on texts leaves among its artifacts."""

from __future__ import annotations

from pathlib import Path

from toolkit.files import write_atomic
from toolkit.run.run_dir import RunDir

_HEAD = "label\tpredicted\tlog_probability\ttext"


def predictions(run: RunDir, split: str) -> Path:
    """A line for each sample of a split, below the names of the columns."""
    return run.artifact(f"{split}_predictions.tsv")


def exported(run: RunDir) -> Path:
    """The best weights."""
    return _made(run.artifact("weights.pt"))


def write_predictions(run: RunDir, split: str, lines: list[str]) -> None:
    write_atomic(_made(predictions(run, split)), "".join(f"{line}\n" for line in [_HEAD, *lines]))


def read_predictions(run: RunDir, split: str) -> list[list[str]]:
    """Label, predicted label, its log-probability and text of each sample; none where there is no file."""
    path = predictions(run, split)
    lines = path.read_text(encoding="utf-8").splitlines()[1:] if path.exists() else []
    return [line.split("\t") for line in lines]


def _made(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    return path
