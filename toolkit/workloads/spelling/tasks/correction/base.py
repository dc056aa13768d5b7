"""Common parts of the tasks that correct spelling errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from toolkit.config.schema import Experiment
from toolkit.data.ragged import Array
from toolkit.errors import DataError
from toolkit.nlp.ratio import mean, ratio
from toolkit.run.run_dir import RunDir
from toolkit.task import Evaluation, Loss, Ragged, Score
from toolkit.workload import Progress
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.prepared import SpellingSet, prepare
from toolkit.workloads.spelling.data.samples.samples import SpellingSamples
from toolkit.workloads.spelling.data.texts.words import normalised
from toolkit.workloads.spelling.files import SpellingFiles
from toolkit.workloads.spelling.metrics.correction import score_corrections
from toolkit.workloads.spelling.metrics.counts import Counts
from toolkit.workloads.spelling.models.batches import NONE, CorrectionBatch
from toolkit.workloads.spelling.models.losses import loss_sums, right_labels, summed_cross_entropy
from toolkit.workloads.spelling.models.search import Search, Written
from toolkit.workloads.spelling.tasks.base import SpellingTask, check_targets, write_lines
from toolkit.workloads.spelling.tasks.correction.batches import ids_of, units_of
from toolkit.workloads.spelling.tokenizers.tokenizer import load_tokenizer

#: Texts of this split are written. For other splits, the decoder reads the targets.
_WRITTEN = "test"
_OUTPUT = "written"
_READ_SUMS = ("loss", "count", "correct", "texts", "right")
#: Counts of words, number of lines, right lines, edit distances, units without an end.
_WRITTEN_SUMS = (*Counts.__slots__, "lines", "equal", "distances", "unended")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetBatch:
    """Texts with their targets, as tensors; also as pairs of texts if the model writes corrections."""

    read: CorrectionBatch
    texts: tuple[tuple[str, str], ...] | None


class CorrectionTask(SpellingTask):
    """Cross-entropy of the tokens of the targets; scores are counts of tokens, texts, words.

    In training and validation the decoder reads the target up to the next token. For the test set it reads
    only its own tokens; outputs are the ids that it has written (`ids_of`).
    """

    train_sums = ("correct",)
    score_sums = (*_READ_SUMS, *_WRITTEN_SUMS)

    @classmethod
    def prepare(cls, experiment: Experiment, progress: Progress | None = None) -> str:
        prepared = prepare(experiment.data, progress)
        return f"{prepared.state}: {cls(experiment, prepared).summary}"

    def __init__(self, experiment: Experiment, data: SpellingSet | None = None) -> None:
        super().__init__(experiment, data)
        self._output = load_tokenizer(self.prepared / layout.OUTPUT_TOKENIZER)
        self._check()
        self._search = Search(kind=experiment.task.search, width=experiment.task.beam_width)
        self._without: dict[str, int] = {}
        self.splits = {name: self._chosen(name, samples) for name, samples in self.splits.items()}
        for name, count in self._without.items():
            if count:
                self.summary += f"\nleft out: {count:,} texts of {name} ({self._misfit()})"

    def _chosen(self, name: str, samples: SpellingSamples) -> SpellingSamples:
        """Return the usable samples of a split, and count the others. Raises DataError if none is usable."""
        check_targets(samples, "sec")
        # No text of the test set is left out, because the length of the output is limited separately.
        fits = np.ones(len(samples), dtype=bool) if name == _WRITTEN else self._fits(samples)
        if not fits.any():
            raise DataError(
                f"{self.prepared}: no text of {name} is left, expected at least one: {self._misfit()}"
            )
        self._without[name] = int((~fits).sum())
        return samples if fits.all() else samples.chosen(fits)

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> TargetBatch:
        samples = self.splits[split]
        texts = None
        if split == _WRITTEN:
            found = samples.texts(indices)
            texts = tuple((text, text if target is None else target) for text, target in found)
        return TargetBatch(read=self._batch(samples, indices, device), texts=texts)

    def loss(self, model: nn.Module, batch: TargetBatch) -> Loss:
        total, right = _scored(model, batch.read)
        correct = right.sum()[None].double()
        return Loss(total=total, count=batch.read.labelled, tokens=batch.read.real_tokens, sums=correct)

    def score(self, model: nn.Module, batch: TargetBatch) -> Score:
        total, right = _scored(model, batch.read)
        known = batch.read.labels != NONE
        texts = known.any(1)
        counts = torch.stack([right.sum(), texts.sum(), (texts & (right == known).all(1)).sum()])
        loss = loss_sums(total, batch.read.labelled)
        outputs: dict[str, Ragged] = {}
        compared = [0.0] * len(_WRITTEN_SUMS)
        if batch.texts is not None:
            written = self.write(model, batch.read, [text for text, _ in batch.texts])
            outputs = {_OUTPUT: ids_of(written, self._output.end)}
            compared = self._compare(batch.texts, written)
        sums = torch.cat([loss, counts.double(), loss.new_tensor(compared)])
        return Score(sums=sums, outputs=outputs)

    def _compare(self, texts: Sequence[tuple[str, str]], units: Sequence[Sequence[Written]]) -> list[float]:
        """Compare the written texts with the targets; return the sums of _WRITTEN_SUMS."""
        made = [self._text(text, each) for (text, _), each in zip(texts, units, strict=True)]
        golds = [normalised(target) for _, target in texts]
        score = score_corrections([text for text, _ in texts], made, golds)
        equal = sum(mine == gold for mine, gold in zip(made, golds, strict=True))
        unended = sum(unit is None for each in units for unit in each)
        positives: tuple[float, ...] = astuple(score.counts)
        return [*positives, score.lines, equal, score.distances, unended]

    def train_metrics(self, sums: Mapping[str, float], count: float) -> dict[str, float]:
        return {"token_accuracy": sums["correct"] / count}

    def metrics(self, split: str, evaluation: Evaluation) -> dict[str, float]:
        """Return the metrics of a split; only written texts have metrics of corrections."""
        sums = self._sums(evaluation)
        found = {
            "loss": mean(sums["loss"], sums["count"]),
            "token_accuracy": ratio(sums["correct"], sums["count"]),
        }
        if split != _WRITTEN:
            return found | {"sequence_accuracy": ratio(sums["right"], sums["texts"])}
        counts = Counts.of_sums(*(sums[name] for name in Counts.__slots__))
        return found | {
            "sequence_accuracy": ratio(sums["equal"], sums["lines"]),
            "correction_f1": counts.f1,
            "precision": counts.precision,
            "recall": counts.recall,
            "mned": ratio(sums["distances"], sums["lines"]),
        }

    def write_report(self, run: RunDir, split: str, evaluation: Evaluation) -> None:
        files, samples = SpellingFiles(run), self.splits[split]
        names = self.score_sums[1:] if split == _WRITTEN else _READ_SUMS[1:]
        sums = self._sums(evaluation)
        counts = {name: sums[name] if name == "distances" else round(sums[name]) for name in names}
        path, without = files.correction_counts(split), self._without[split]
        self._write_facts(path, split, evaluation, without, counts=counts)
        if split == _WRITTEN:
            texts = zip(samples.texts(np.arange(len(samples))), evaluation.outputs[_OUTPUT], strict=True)
            made = (self._text(text, units_of(ids, self._output.end)) for (text, _), ids in texts)
            write_lines(files.corrections(split), samples, made)

    def correct(self, model: nn.Module, split: str, indices: Array, device: torch.device) -> list[str]:
        """Return the corrections of these texts of a split by a model in evaluation mode."""
        samples = self.splits[split]
        texts = [text for text, _ in samples.texts(indices)]
        written = self.write(model, self._batch(samples, indices, device), texts)
        return [self._text(text, units) for text, units in zip(texts, written, strict=True)]

    # -- defined by each task ----------------------------------------------------------------

    def write(self, model: Any, batch: CorrectionBatch, texts: Sequence[str]) -> list[list[Written]]:
        """Return the units that a model in evaluation mode writes for each of these texts."""
        raise NotImplementedError

    def _batch(self, samples: SpellingSamples, indices: Array, device: torch.device) -> CorrectionBatch:
        raise NotImplementedError

    def _text(self, text: str, units: Sequence[Written]) -> str:
        """Return the correction of a text from the written units."""
        raise NotImplementedError

    def _fits(self, samples: SpellingSamples) -> np.ndarray:
        """Return which samples can be used for training, [n]."""
        raise NotImplementedError

    def _misfit(self) -> str:
        """Return the reason why other samples cannot be used."""
        raise NotImplementedError

    def _check(self) -> None:
        """Raise DataError if the tokenizers do not fit the task."""


def _scored(model: nn.Module, batch: CorrectionBatch) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of a batch, and which of the wanted tokens [B, T] are the most probable ones."""
    scores = batch.scored_by(model)
    return summed_cross_entropy(scores, batch.labels), right_labels(scores, batch.labels)
