"""The encoding that a run keeps: labels, tokenizer, padding; and texts in this encoding. Imports no torch."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
import numpy.typing as npt

from toolkit.config.schema import Experiment
from toolkit.data.ragged import Lists, offsets_of
from toolkit.errors import DataError
from toolkit.files import read_json, write_json
from toolkit.nlp.exported_files import ExportedFiles
from toolkit.nlp.tokenizers.pretrained import PretrainedEncoder
from toolkit.nlp.tokenizers.tokenizer_files import TOKENIZER
from toolkit.nlp.tokens import NUMBER, Pieces, Vocabulary
from toolkit.run.run_dir import RunDir
from toolkit.workload import silent
from toolkit.workloads.text_classification.config import DocNN, TextTable
from toolkit.workloads.text_classification.data import layout
from toolkit.workloads.text_classification.data.encoders import Encoding, cut_texts
from toolkit.workloads.text_classification.data.folding import cut_into_samples
from toolkit.workloads.text_classification.files import ClassificationFiles


def keep(run: RunDir, encoding: Encoding) -> None:
    """Write the encoding. The files of the tokenizer are exported with the model instead."""
    write_json(ClassificationFiles(run).encoding, {**asdict(encoding), "folder": None})


def stored_encoding(run: RunDir) -> Encoding | None:
    """Read the encoding of a run; None if its version did not keep it. Raises DataError."""
    stored = read_json(ClassificationFiles(run).encoding)
    if stored is None:
        return None
    files = ExportedFiles(run)
    folders, names = (files.encoding, files.model), (layout.VOCABULARY, TOKENIZER)
    places = (folder / name for folder in folders for name in names)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise DataError(
            f"{run.artifacts} lacks the tokenizer ({layout.VOCABULARY} or {TOKENIZER}), which every finished "
            "run has: restore it, or train again"
        )
    try:
        facts = Encoding(**{**stored, "labels": tuple(stored["labels"]), "folder": found.parent})
        return replace(facts, pad_id=int(facts.pad_id), vocabulary_size=int(facts.vocabulary_size))
    except (TypeError, KeyError, ValueError) as error:
        raise DataError(f"{ClassificationFiles(run).encoding} is damaged: {error}") from error


def kept_encoding(run: RunDir, data: TextTable, fingerprint: str) -> Encoding:
    """Read the encoding of a run; if its version did not keep it, use that of its prepared data.

    fingerprint  fingerprint of the run's training data
    Raises DataError if the encoding is missing, or if the training data have changed.
    """
    if (stored := stored_encoding(run)) is not None:
        return stored
    prepared = data.prepare(silent)
    if prepared.fingerprint != fingerprint:
        raise DataError(
            f"{run.run_id} was trained with a version that did not keep the vocabulary, and its training "
            "data have changed since: restore the data that it was trained on"
        )
    encoding: Encoding = prepared.encoding
    return encoding


def without_origin(run: RunDir, experiment: Experiment) -> Experiment:
    """Return the experiment without its initial weights: the trained weights are loaded instead."""
    model = experiment.model
    if isinstance(model, DocNN):
        return replace(experiment, model=replace(model, vectors=None))
    exported = ExportedFiles(run).model
    return replace(experiment, model=replace(model, path=str(exported))) if exported.is_dir() else experiment


class TextReader:
    """Encodes texts like the run's prepared set: the same texts give the same samples."""

    def __init__(self, data: TextTable, kept: Encoding) -> None:
        self._data = data
        if data.tokenizer == "pretrained":
            encoder = PretrainedEncoder(str(kept.folder), data.max_tokens, kept.pad_id)
            self._encode, self._before, self._after = encoder.encode, encoder.before, encoder.after
        else:
            self._encode, self._before, self._after = self._words, (), ()
            self._vocabulary = Vocabulary.load(kept.folder / layout.VOCABULARY)

    def _words(self, texts: Sequence[str]) -> Pieces:
        numbers = self._vocabulary.encode
        return cut_texts(self._data, texts, lambda tokens: numbers(tokens).astype(NUMBER).tobytes())

    def read(self, texts: Sequence[str]) -> tuple[Lists, npt.NDArray[np.int64]]:
        """Return the tokens of all samples of texts, and the place of each sample's text: [samples]."""
        before, after = (array("I", each).tobytes() for each in (self._before, self._after))
        room = self._data.max_tokens - len(self._before) - len(self._after)
        samples = list(cut_into_samples(texts, self._encode(texts), room, self._data.fold))
        tokens = [before + each.tokens + after for each in samples]
        lengths = np.array([len(each) // NUMBER.itemsize for each in tokens], dtype=np.int64)
        text_of = np.array([each.place for each in samples], dtype=np.int64)
        return Lists(np.frombuffer(b"".join(tokens), NUMBER), offsets_of(lengths)), text_of
