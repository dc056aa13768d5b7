"""Detection of spelling errors: which words of a text are misspelt, or whether a text has misspelt words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from toolkit.config.schema import Experiment
from toolkit.data.ragged import Array
from toolkit.errors import DataError
from toolkit.nlp.ratio import mean
from toolkit.run.run_dir import RunDir
from toolkit.task import Evaluation, Loss, Ragged, Score, lists_of
from toolkit.workloads.spelling.config.noise import WhitespaceNoise, noises_within
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.prepared import SpellingSet
from toolkit.workloads.spelling.data.samples.samples import SpellingSamples
from toolkit.workloads.spelling.files import SpellingFiles
from toolkit.workloads.spelling.metrics.detection import COUNTS, DetectionScore, label_counts
from toolkit.workloads.spelling.models.batches import NONE, DetectionBatch
from toolkit.workloads.spelling.models.losses import loss_sums, right_labels, summed_cross_entropy
from toolkit.workloads.spelling.tasks.base import SpellingTask, label_fields, no_errors, write_lines
from toolkit.workloads.spelling.tokenizers.tokenizer import load_tokenizer

#: A word or text is labelled wrong if its probability of an error is higher.
THRESHOLD = 0.5
_OUTPUT = "probabilities"


class DetectionTask(SpellingTask):
    """Cross-entropy over right and wrong; scores are counts of labels.

    Outputs are the probabilities of an error, for each word or for the text.
    """

    #: Whether labels are of texts, not of words.
    of_texts: ClassVar[bool]
    #: Name of the share of right labels.
    accuracy: ClassVar[str]
    train_sums = ("correct",)
    score_sums = ("loss", "count", *COUNTS)

    def model(self) -> nn.Module:
        return self._built(of_texts=self.of_texts)

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> DetectionBatch:
        samples = self.splits[split]
        labels = label_fields(*self._labels(samples, indices), device)
        return DetectionBatch(**self._word_fields(samples, indices, device), **labels)

    def _labels(self, samples: SpellingSamples, indices: Array) -> tuple[Array, Array]:
        """Return the labels, NONE if unknown, and which words are real; both have the same shape."""
        if self.of_texts:
            errors = samples.errors[indices]
            return errors, np.zeros(errors.shape, dtype=bool)
        return self._word_labels(samples, indices)

    def loss(self, model: nn.Module, batch: DetectionBatch) -> Loss:
        scores, labels = _scores(model, batch)
        total, correct = summed_cross_entropy(scores, labels), right_labels(scores, labels).sum()
        return Loss(total=total, count=batch.labelled, tokens=batch.real_tokens, sums=correct[None].double())

    def score(self, model: nn.Module, batch: DetectionBatch) -> Score:
        scores, labels = _scores(model, batch)
        probabilities = scores.float().softmax(-1)[..., 1]
        loss = loss_sums(summed_cross_entropy(scores, labels), batch.labelled)
        sums = [loss, counts_of(probabilities > THRESHOLD, batch)]
        return Score(sums=torch.cat(sums), outputs={_OUTPUT: self._labelled(probabilities, batch)})

    def _labelled(self, probabilities: torch.Tensor, batch: DetectionBatch) -> torch.Tensor | Ragged:
        """Return the probabilities of the texts [B], or of their words without padding."""
        return probabilities if self.of_texts else of_words(probabilities, batch.words)

    def detect(
        self, model: nn.Module, split: str, indices: np.ndarray, device: torch.device
    ) -> list[list[float]]:
        """Return the probability of an error for each word of these texts of a split, or for each text."""
        batch = self.collate(split, indices, device)
        probabilities = _scores(model, batch)[0].softmax(-1)[..., 1]
        return [each.tolist() for each in lists_of(self._labelled(probabilities, batch))]

    def train_metrics(self, sums: Mapping[str, float], count: float) -> dict[str, float]:
        return {self.accuracy: sums["correct"] / count}

    def metrics(self, split: str, evaluation: Evaluation) -> dict[str, float]:
        total, count, *counts = evaluation.sums.tolist()
        score = DetectionScore.of_sums(*counts)
        found = {"loss": mean(total, count), **score.figures(), self.accuracy: score.accuracy}
        if self._experiment.data.dictionary and not self.of_texts:
            found |= score.rates()
        return found

    def write_report(self, run: RunDir, split: str, evaluation: Evaluation) -> None:
        files, counts = SpellingFiles(run), self._counts(evaluation, COUNTS)
        self._write_facts(files.detection_counts(split), split, evaluation, counts=counts)
        labels = map(line_of, evaluation.outputs[_OUTPUT])
        none = (lambda text: "0") if self.of_texts else no_errors
        write_lines(files.detections(split), self.splits[split], labels, none)


class SedWordsTask(DetectionTask):
    """Right or wrong, for each word; with a dictionary, real-word errors are also counted separately."""

    of_texts = False
    accuracy = "word_accuracy"

    def __init__(self, experiment: Experiment, data: SpellingSet | None = None) -> None:
        super().__init__(experiment, data)
        respaces = any(isinstance(each, WhitespaceNoise) for _, each in noises_within(experiment.data.noise))
        if respaces and not load_tokenizer(self.prepared / layout.TOKENIZER).reads_spaces:
            raise DataError(
                "data.noise: found whitespace, which changes the words that data.tokenizer_path reads; "
                "expected other noise, or a tokenizer of single characters (`stk spelling tokenizer`)"
            )
        for split, count in self._data.unlabelled.items():
            if count == len(self.splits[split]):
                (origin,) = self.splits[split].origins(np.array([0])).values()
                raise DataError(
                    f"{origin.file}: no text of {split} has a label for each word, or a right text with as "
                    "many words: name a benchmark of the task sed_words or sec"
                )


class SedSequenceTask(DetectionTask):
    """Right or wrong, for each text."""

    of_texts = True
    accuracy = "accuracy"


def _scores(model: nn.Module, batch: DetectionBatch) -> tuple[torch.Tensor, torch.Tensor]:
    assert batch.labels is not None
    return batch.scored_by(model).float(), batch.labels


def line_of(probabilities: Array) -> str:
    """Return the labels of a text's words, or its own label, as a line: 1 for an error."""
    return " ".join("1" if each > THRESHOLD else "0" for each in probabilities.tolist())


def of_words(probabilities: torch.Tensor, words: torch.Tensor) -> Ragged:
    """Cut the probabilities [B, W] to the number of words of each text.

    words  [B, P] word of each piece; NONE for padding
    """
    return Ragged(rows=probabilities, lengths=words.max(1).values + 1)


def counts_of(found: torch.Tensor, batch: DetectionBatch) -> torch.Tensor:
    """Return `label_counts` on the device, [9] float64; found: which words or texts are labelled wrong."""
    labels = batch.labels
    assert labels is not None
    return torch.stack(label_counts(found, labels == 1, labels != NONE, batch.real_words)).double()
