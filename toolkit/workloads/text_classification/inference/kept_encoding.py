"""The encoding that a run keeps: labels, tokenizer, padding. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from toolkit.config.schema import Experiment
from toolkit.errors import DataError
from toolkit.files import read_json, write_json
from toolkit.nlp.exported_files import ExportedFiles
from toolkit.nlp.tokenizers.tokenizer_files import TOKENIZER
from toolkit.run.run_dir import RunDir
from toolkit.workload import silent
from toolkit.workloads.text_classification.config import DocNN, TextTable
from toolkit.workloads.text_classification.data import layout
from toolkit.workloads.text_classification.data.prepared import Encoding
from toolkit.workloads.text_classification.files import ClassificationFiles


def keep(run: RunDir, encoding: Encoding) -> None:
    """Write the encoding without the tokenizer, whose files are exported with the model."""
    write_json(ClassificationFiles(run).encoding, {**asdict(encoding), "folder": None})


def stored_encoding(run: RunDir) -> Encoding | None:
    """Read what a run keeps; None for one of an earlier version, which kept less. Raises DataError."""
    stored = read_json(ClassificationFiles(run).encoding)
    return None if stored is None else _read(run, stored)


def kept_encoding(run: RunDir, data: TextTable, fingerprint: str) -> Encoding:
    """Read what a run keeps; of an earlier version's, which kept less, from its prepared data.

    fingerprint  of the data that the run has learnt from
    Raises DataError where that is gone, or its data have changed.
    """
    if (stored := stored_encoding(run)) is not None:
        return stored
    prepared = data.prepare(silent)
    if prepared.fingerprint != fingerprint:
        raise DataError(
            f"{run.run_id} is of a version that did not keep its vocabulary, and its training data have "
            "changed since: put back what it was trained on"
        )
    return prepared.encoding


def without_origin(run: RunDir, experiment: Experiment) -> Experiment:
    """The experiment without the model's initial weights, which are not needed: its own are loaded."""
    model = experiment.model
    if isinstance(model, DocNN):
        return replace(experiment, model=replace(model, vectors=None))
    exported = ExportedFiles(run).model
    return replace(experiment, model=replace(model, path=str(exported))) if exported.is_dir() else experiment


def _read(run: RunDir, stored: Mapping[str, Any]) -> Encoding:
    files = ExportedFiles(run)
    folders, names = (files.encoding, files.model), (layout.VOCABULARY, TOKENIZER)
    places = (folder / name for folder in folders for name in names)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise DataError(
            f"{run.artifacts} has no tokenizer, which a run leaves there when it finishes "
            f"({layout.VOCABULARY} or {TOKENIZER}): put it back, or train again"
        )
    try:
        facts = Encoding(**{**stored, "labels": tuple(stored["labels"]), "folder": found.parent})
        return replace(facts, pad_id=int(facts.pad_id), vocabulary_size=int(facts.vocabulary_size))
    except (TypeError, KeyError, ValueError) as error:
        raise DataError(f"{ClassificationFiles(run).encoding} is damaged: {error}") from error
