"""Base of all tasks on texts with spelling errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from heapq import merge
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from toolkit.checkpoint.verification import trained_on
from toolkit.config.schema import Experiment
from toolkit.data.ragged import Array
from toolkit.errors import DataError
from toolkit.files import json_value, open_atomic, write_json
from toolkit.nlp.exported_files import ExportedFiles
from toolkit.nlp.weights_export import export_model
from toolkit.run.run_dir import RunDir
from toolkit.system.output.amounts import counted
from toolkit.task import Evaluation, build_model
from toolkit.workload import Progress
from toolkit.workloads.spelling.config.data import SpellingTexts
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.prepared import SpellingSet, prepare
from toolkit.workloads.spelling.data.samples.samples import SpellingSamples
from toolkit.workloads.spelling.data.samples.sources import data_sets
from toolkit.workloads.spelling.models.batches import NONE
from toolkit.workloads.spelling.repair_run import without_origin

_HOST = torch.device("cpu")

log = logging.getLogger("toolkit")


class SpellingTask:
    """Opens the prepared set, encodes other files in the same way, and exports the model."""

    score_sums: ClassVar[tuple[str, ...]]

    @classmethod
    def prepare(cls, experiment: Experiment, progress: Progress | None = None) -> str:
        return prepare(experiment.data, progress).summary()

    def __init__(self, experiment: Experiment, data: SpellingSet | None = None) -> None:
        self._experiment = experiment
        self._data = data = data or prepare(experiment.data)
        self.prepared = data.path
        self.fingerprint = data.fingerprint
        self.summary = data.description()
        self.splits: Mapping[str, SpellingSamples] = {name: data.split(name) for name in data.splits}

    def on(self, data: SpellingTexts, progress: Progress | None = None) -> Self:
        known = prepare(data, progress, encoding=self._data.path, trained_on=self._data.fingerprint)
        return type(self)(replace(self._experiment, data=data), known)

    @classmethod
    def of_kept(
        cls,
        run: RunDir,
        experiment: Experiment,
        data: SpellingTexts,
        named: Collection[str],
        progress: Progress,
    ) -> Self | None:
        """Return this task on another file, encoded by the tokenizers and the dictionary that a run keeps."""
        folder = ExportedFiles(run).encoding
        if not (folder / layout.TOKENIZER).is_file():
            return None
        known = prepare(data, progress, encoding=folder, trained_on=trained_on(run))
        experiment = without_origin(run, experiment)
        return cls(replace(experiment, data=layout.encoded_by(data, folder)), known)

    def model(self) -> nn.Module:
        return self._built()

    def _built(self, **more: Any) -> nn.Module:
        """Build the model; `more`: arguments in addition to the sizes of the vocabularies."""
        return build_model(
            self._experiment,
            vocabulary_size=self._data.meta["vocabulary_size"],
            output_vocabulary_size=self._data.meta["output_vocabulary_size"],
            **more,
        )

    def metrics(self, split: str, evaluation: Evaluation) -> dict[str, float]:
        raise NotImplementedError

    def metrics_need_outputs(self, split: str) -> bool:
        return False

    def _fields(self, samples: SpellingSamples, indices: Array, device: torch.device) -> dict[str, Any]:
        """Return the fields of a Batch of these samples."""
        lengths = samples.lengths[indices].astype(np.int64)
        tokens = samples.rows(layout.TOKENS, indices, self._data.meta["pad_id"])
        return {
            "tokens": on(tokens, device),
            "lengths": on(lengths, device),
            "real_tokens": int(lengths.sum()),
        }

    def _word_fields(self, samples: SpellingSamples, indices: Array, device: torch.device) -> dict[str, Any]:
        """Return the fields of a DetectionBatch of these samples, without labels."""
        pieces = samples.rows(layout.PIECES, indices, layout.NO_PIECE)
        arrays = {
            "pieces": np.where(pieces == layout.NO_PIECE, NONE, pieces),
            "words": samples.rows(layout.WORDS, indices, NONE),
        }
        if self._experiment.model.word_features:
            arrays["features"] = samples.features(indices)
        return {
            **self._fields(samples, indices, device),
            **{name: on(values, device) for name, values in arrays.items()},
            "word_count": max(int(samples.sizes(layout.LABELS, indices).max(initial=0)), 1),
            "host_pieces": on(arrays["pieces"], _HOST),
            "host_words": on(arrays["words"], _HOST),
        }

    def _word_labels(self, samples: SpellingSamples, indices: Array) -> tuple[Array, Array]:
        """Return the labels of the words, NONE if unknown, and which words are real: [n, most words]."""
        labels = samples.rows(layout.LABELS, indices, layout.UNKNOWN)
        if self._data.meta["has_dictionary"]:
            real = samples.real_words(indices)
        else:
            real = np.zeros(labels.shape, dtype=bool)
        return np.where(labels == layout.UNKNOWN, NONE, labels), real

    def _sums(self, evaluation: Evaluation) -> dict[str, float]:
        """Return the sums of an evaluation by name."""
        return dict(zip(self.score_sums, evaluation.sums.tolist(), strict=True))

    def _counts(self, evaluation: Evaluation, names: Iterable[str]) -> dict[str, int]:
        """Return these sums of an evaluation, which are whole numbers."""
        sums = self._sums(evaluation)
        return {name: round(sums[name]) for name in names}

    def _write_facts(
        self, path: Path, split: str, evaluation: Evaluation, without: int = 0, **counts: Mapping[str, float]
    ) -> None:
        """Write the counts and the metrics of a split as JSON, and create the folder of the file.

        without  number of texts that the task leaves out, beside those that the samples do
        """
        samples = self.splits[split]
        if left_out := without + sum(1 for _ in samples.left_out()):
            log.warning(
                "the scores of %s are of %s; %d were left out",
                *(split, counted(len(samples), "text"), left_out),
            )
        facts = {"split": split, "texts": len(samples), "left_out": left_out}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, json_value({**facts, **counts, "metrics": self.metrics(split, evaluation)}))

    def export(self, run: RunDir, model: nn.Module) -> None:
        root = Path(data_sets(self._experiment.data)[0]).stem
        kept = self._data.meta["files"]
        files = [self.prepared / name for name in layout.ENCODERS.values() if name in kept]
        export_model(run, model, root, files)


def on(values: Array, device: torch.device) -> torch.Tensor:
    """Return an array as a tensor on a device."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(device, non_blocking=True)


def label_fields(labels: Array, real: Array, device: torch.device) -> dict[str, Any]:
    """Return the fields of a DetectionBatch for labels; real: which labels are of real words."""
    labelled = int((labels != NONE).sum())
    return {"labels": on(labels, device), "real_words": on(real, device), "labelled": labelled}


def write_lines(
    path: Path, samples: SpellingSamples, lines: Iterable[str], of_left_out: Callable[[str], str] = str
) -> None:
    """Write a line for each line of a split's files, in their order.

    lines        one line for each sample
    of_left_out  returns the line for a text that was left out; default: the text
    """
    places = zip(samples.sources.tolist(), samples.lines.tolist(), strict=True)
    made = ((source, line, text) for (source, line), text in zip(places, lines, strict=True))
    left_out = ((source, line, of_left_out(text)) for source, line, text in samples.left_out())
    with open_atomic(path) as stream:
        stream.writelines(f"{text}\n" for _, _, text in merge(made, left_out))


def check_targets(samples: SpellingSamples, task: str) -> None:
    """Raise DataError for a file with labels instead of right texts; task: a benchmark task with texts."""
    _, firsts = np.unique(samples.sources, return_index=True)
    for first, (_, target) in zip(firsts.tolist(), samples.texts(firsts), strict=True):
        if target is None:
            (origin,) = samples.origins(np.array([first])).values()
            raise DataError(
                f"{origin.file}: correct.txt has labels, expected texts: name a benchmark of the task {task}"
            )


def no_errors(text: str) -> str:
    """Return the labels of a text without errors, as a line."""
    return " ".join("0" for _ in text.split())
