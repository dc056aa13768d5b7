"""The tiny experiment of the core's tests, with text classification."""

from __future__ import annotations

import json
from pathlib import Path

from tests.toolkit.support.bert import write_bert
from tests.toolkit.support.tiny import EXPERIMENT, write_experiment
from toolkit.config import Experiment, load

_EXPERIMENT = EXPERIMENT.replace("toy_texts", "text_classification").replace("convolutions", "docnn")


def write_docnn(folder: Path) -> Path:
    """Write the tables and the experiment file, with the DocNN, into a folder; returns the file."""
    return write_experiment(folder, _EXPERIMENT)


def tiny_docnn(folder: Path, *overrides: str) -> Experiment:
    """The experiment with its data in a folder, with the DocNN."""
    return load(write_docnn(folder), overrides)


def tiny_balanced(folder: Path, *overrides: str) -> Experiment:
    """The same with balanced class weights."""
    return tiny_docnn(folder, "task.class_weights=balanced", *overrides)


def tiny_bert(folder: Path, *overrides: str) -> Experiment:
    """The tiny experiment with a BERT, its texts folded into fragments of a dozen pieces."""
    bert = folder / "bert"
    if not bert.exists():
        write_bert(bert)
    return tiny_docnn(
        folder,
        f"model={{kind: pretrained, path: {json.dumps(str(bert))}}}",
        "data.tokenizer=pretrained",
        "data.tokenizer_path=${model.path}",
        "data.max_tokens=12",
        "data.fold=word",
        *overrides,
    )
