"""Detection and correction of spelling errors in texts with possibly wrong white space."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from toolkit.config.schema import Experiment
from toolkit.data.ragged import Array
from toolkit.data.sources.source_files import TEST
from toolkit.nlp.ratio import mean, ratio
from toolkit.run.run_dir import RunDir
from toolkit.task import Evaluation, Loss, Score, lists_of
from toolkit.training.warm_start.find import find_weights
from toolkit.training.warm_start.load import load_exact_weights
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.encoding import TextEncoder
from toolkit.workloads.spelling.data.samples.in_memory_set import TextsAtHand
from toolkit.workloads.spelling.data.samples.prepared import SpellingSet
from toolkit.workloads.spelling.data.samples.samples import SpellingSamples
from toolkit.workloads.spelling.data.texts.repairs import repaired
from toolkit.workloads.spelling.files import SpellingFiles
from toolkit.workloads.spelling.metrics.correction import score_corrections
from toolkit.workloads.spelling.metrics.counts import NOTHING, Counts
from toolkit.workloads.spelling.metrics.detection import COUNTS, DetectionScore
from toolkit.workloads.spelling.models.batches import NONE, Batch, DetectionBatch, RepairPlusBatch
from toolkit.workloads.spelling.models.losses import loss_sums, losses_of_texts, right_labels
from toolkit.workloads.spelling.models.repair_plus import PlusScores, TokenizationRepairPlus
from toolkit.workloads.spelling.models.search import Search, Written, write_words
from toolkit.workloads.spelling.repair_run import repair_experiment
from toolkit.workloads.spelling.tasks.base import label_fields, no_errors, on, write_lines
from toolkit.workloads.spelling.tasks.correction.batches import (
    ids_of,
    limits_of,
    targets_of_words,
    text_of_words,
    units_of,
)
from toolkit.workloads.spelling.tasks.detection import THRESHOLD, counts_of, line_of, of_words
from toolkit.workloads.spelling.tasks.repair.base import (
    CLASSES,
    REPAIR_SUMS,
    RepairingTask,
    classes_of,
    known_labels,
    repaired_texts,
)
from toolkit.workloads.spelling.tokenizers.tokenizer import TextTokenizer, load_tokenizer

#: Words of this split are written.
_WRITTEN = "test"
_KEY = "model.repair_run"
#: Outputs besides the classes of characters.
_PROBABILITIES, _WORDS = "probabilities", "written"
#: Counts of the corrected texts, white space included.
_CORRECTED = tuple(f"corrected_{name}" for name in Counts.__slots__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlusBatch:
    """Texts with their labels and targets.

    lines  each text, the words that the model reads, and the target; None if the model writes no words
    """

    texts: RepairPlusBatch
    lines: Sequence[tuple[str, list[str], str | None]] | None


class TokenizationRepairPlusTask(RepairingTask):
    """Detects errors in the words of the repaired text; with a decoder, also writes corrected words.

    The loss of a text is the mean cross-entropy of its words, plus that of the wanted tokens, plus that of
    its characters if the repair is trained, too. The sum is multiplied by the number of words, which is also
    the count. So a step's loss is a mean over words, for any batches and ranks.

    In training and evaluations the model reads the words of the right white space, and its own repair is
    scored separately. In use it reads the words of its own repair.

    Outputs are the class of each character, the probability of an error of each word, and for the test set
    the ids of the written words (`ids_of`).
    """

    train_sums = ("correct",)
    score_sums = ("loss", "count", *COUNTS, *REPAIR_SUMS, "tokens", "equal_tokens", *_CORRECTED)

    def __init__(self, experiment: Experiment, data: SpellingSet | None = None) -> None:
        super().__init__(experiment, data)
        self._repair = repair_experiment(experiment.model.repair_run).model
        self._output: TextTokenizer | None = None
        if experiment.model.num_sec_layers:
            self._output = load_tokenizer(self._data.path / layout.OUTPUT_TOKENIZER)

    def model(self) -> nn.Module:
        config = self._experiment.model
        built = self._built(repair=self._repair)
        assert isinstance(built, TokenizationRepairPlus)
        if not Path(config.repair_run).is_file():
            load_exact_weights(_KEY, find_weights(_KEY, config.repair_run), built.repair)
        return built

    def export(self, run: RunDir, model: nn.Module) -> None:
        super().export(run, model)
        repair = RunDir(Path(self._experiment.model.repair_run))
        shutil.copyfile(repair.config, SpellingFiles(run).repair_experiment)

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> PlusBatch:
        samples = self.splits[split]
        texts = RepairPlusBatch(
            **self._word_fields(samples, indices, device),
            **label_fields(*self._word_labels(samples, indices), device),
            repair_labels=known_labels(samples.rows(layout.REPAIRS, indices, layout.UNKNOWN), device),
        )
        lines = None
        if self._output is not None:
            most = self._experiment.model.sec_max_output_length
            made = targets_of_words(samples, indices, self._output, most)
            targets, numbers, labels = (on(each, device) for each in made)
            texts = replace(texts, targets=targets, target_words=numbers, target_labels=labels)
            if split == _WRITTEN:
                read = zip(samples.texts(indices), words_read(samples, indices), strict=True)
                lines = [(text, words, target) for (text, target), words in read]
        return PlusBatch(texts=texts, lines=lines)

    def loss(self, model: nn.Module, batch: PlusBatch) -> Loss:
        texts, scores = batch.texts, _scores(model, batch.texts)
        total, correct = self._loss(scores, texts), right_labels(scores.words, texts.labels).sum()
        return Loss(total=total, count=texts.labelled, tokens=texts.real_tokens, sums=correct[None].double())

    def _loss(self, scores: PlusScores, texts: RepairPlusBatch) -> torch.Tensor:
        total, words = losses_of_texts(scores.words, texts.labels)
        if scores.written is not None:
            assert texts.target_labels is not None
            written, tokens = losses_of_texts(scores.written, texts.target_labels)
            total = total + words * written / tokens.clamp(min=1)
        if not self._experiment.model.fix_tokenization_repair:
            weights = self._repair.class_weights
            repair, characters = losses_of_texts(scores.repair, texts.repair_labels, weights)
            total = total + words * repair / characters.clamp(min=1)
        return total.sum()

    def score(self, model: Any, batch: PlusBatch) -> Score:
        texts, scores = batch.texts, _scores(model, batch.texts)
        probabilities = scores.words.softmax(-1)[..., 1]
        sums = [
            loss_sums(self._loss(scores, texts), texts.labelled),
            counts_of(probabilities > THRESHOLD, texts),
            self._repair_sums(scores.repair, texts.repair_labels, texts.tokens),
            _tokens(scores, texts),
        ]
        outputs = {
            CLASSES: classes_of(scores.repair, texts.lengths),
            _PROBABILITIES: of_words(probabilities, texts.words),
        }
        counts = NOTHING
        if self._output is not None and batch.lines is not None:
            written = self.write(model, texts)
            outputs[_WORDS] = ids_of(written, self._output.end)
            counts = _compared(batch.lines, written, self._output)
        sums.append(sums[0].new_tensor(astuple(counts)))
        return Score(sums=torch.cat(sums), outputs=outputs)

    def write(self, model: Any, texts: DetectionBatch) -> list[list[Written]]:
        """Return the units of words that a model in evaluation mode writes for each of these texts."""
        assert self._output is not None
        task = self._experiment.task
        limits = limits_of(self._output, self._experiment.model.max_word_length)
        return write_words(model, texts, Search(kind=task.search, width=task.beam_width), limits)

    def correct(self, model: Any, split: str, indices: np.ndarray, device: torch.device) -> list[str]:
        """Return the corrections of these texts of a split by a model in evaluation mode.

        The model repairs white space; with a decoder, it then writes the words of the repaired text.
        """
        repaired = self.repair(model, split, indices, device)
        if self._output is None:
            return repaired
        texts = [text for text, _ in self.splits[split].texts(indices)]
        return self._written(model, texts, repaired, device)

    def correct_words(self, model: Any, split: str, indices: np.ndarray, device: torch.device) -> list[str]:
        """Return the corrected words of these texts; white space is not repaired."""
        texts = [text for text, _ in self.splits[split].texts(indices)]
        return self._written(model, texts, texts, device)

    def _written(
        self, model: Any, texts: Sequence[str], repaired: Sequence[str], device: torch.device
    ) -> list[str]:
        """Return the written words of repaired texts: one for each word."""
        assert self._output is not None
        written = self.write(model, self.texts_repaired(texts, repaired, device))
        words = map(str.split, repaired)
        return [text_of_words(units, own, self._output) for units, own in zip(written, words, strict=True)]

    def texts_repaired(
        self, texts: Sequence[str], repaired: Sequence[str], device: torch.device
    ) -> DetectionBatch:
        """Return a batch of texts with the words of their repaired versions, as returned by `repair`."""
        pairs = zip(texts, repaired, strict=True)
        lists = [self._encoder.lists(text, spaced=spaced) for text, spaced in pairs]
        read = TextsAtHand.of(self._data.path, self._encoder, texts, lists).split(TEST)
        return DetectionBatch(**self._word_fields(read, np.arange(len(texts)), device))

    @torch.no_grad()
    def repair(self, model: Any, split: str, indices: np.ndarray, device: torch.device) -> list[str]:
        """Return these texts with only their white space repaired."""
        samples = self.splits[split]
        batch = Batch(**self._fields(samples, indices, device))
        classes = lists_of(classes_of(model.repairs(batch), batch.lengths))
        return [*repaired_texts(samples, indices, classes)]

    def detect(self, model: Any, split: str, indices: np.ndarray, device: torch.device) -> list[list[float]]:
        """Return the probability of an error for each word of these texts; white space is not repaired."""
        texts = DetectionBatch(**self._word_fields(self.splits[split], indices, device))
        probabilities = model.labels(texts).float().softmax(-1)[..., 1]
        return [each.tolist() for each in lists_of(of_words(probabilities, texts.words))]

    @cached_property
    def _encoder(self) -> TextEncoder:
        # Created at first use, because evaluations do not need the dictionary.
        return TextEncoder(layout.encoded_by(self._experiment.data, self._data.path))

    def train_metrics(self, sums: Mapping[str, float], count: float) -> dict[str, float]:
        return {"word_accuracy": sums["correct"] / count}

    def metrics(self, split: str, evaluation: Evaluation) -> dict[str, float]:
        """Return the metrics of a split; only written words have metrics of corrections."""
        sums = self._sums(evaluation)
        score = DetectionScore.of_sums(*(sums[name] for name in COUNTS))
        found = {
            "loss": mean(sums["loss"], sums["count"]),
            **score.figures(),
            "word_accuracy": score.accuracy,
            "repair_f1": self.repair_score(evaluation).counts.f1,
        }
        if self._experiment.data.dictionary:
            found |= score.rates()
        if self._output is not None:
            found["token_accuracy"] = ratio(sums["equal_tokens"], sums["tokens"])
            if split == _WRITTEN:
                found["correction_f1"] = Counts.of_sums(*(sums[name] for name in _CORRECTED)).f1
        return found

    def write_report(self, run: RunDir, split: str, evaluation: Evaluation) -> None:
        files, samples = SpellingFiles(run), self.splits[split]
        found, repair = self._counts(evaluation, COUNTS), self._repair_facts(evaluation)
        self._write_facts(files.repair_counts(split), split, evaluation, detection=found, repair=repair)
        texts = repaired_texts(samples, np.arange(len(samples)), evaluation.outputs[CLASSES])
        write_lines(files.repairs(split), samples, texts)
        labels = map(line_of, evaluation.outputs[_PROBABILITIES])
        write_lines(files.detections(split), samples, labels, no_errors)
        output = self._output
        if output is not None and split == _WRITTEN:
            texts_read = words_read(samples, np.arange(len(samples)))
            read = zip(texts_read, evaluation.outputs[_WORDS], strict=True)
            made = (text_of_words(units_of(ids, output.end), words, output) for words, ids in read)
            write_lines(files.corrections(split), samples, made)


def words_read(samples: SpellingSamples, indices: Array) -> Iterator[list[str]]:
    """Yield the words of each of these texts with the right white space, if that is known."""
    for place, (text, _) in enumerate(samples.texts(indices)):
        repairs = samples.rows(layout.REPAIRS, indices[place : place + 1], layout.UNKNOWN)[0, 1:-1]
        # UNKNOWN is not a class, so it changes nothing.
        yield repaired(text, repairs.tolist()).split()


def _scores(model: nn.Module, batch: RepairPlusBatch) -> PlusScores:
    words, repair, written = batch.scored_by(model)
    return PlusScores(
        words=words.float(), repair=repair.float(), written=None if written is None else written.float()
    )


def _compared(
    lines: Sequence[tuple[str, list[str], str | None]],
    written: Sequence[Sequence[Written]],
    tokenizer: TextTokenizer,
) -> Counts:
    """Compare the corrected texts with their targets; texts without a target are ignored."""
    known = [
        (text, text_of_words(units, words, tokenizer), target)
        for (text, words, target), units in zip(lines, written, strict=True)
        if target is not None
    ]
    return score_corrections(*zip(*known, strict=True)).counts if known else NOTHING


def _tokens(scores: PlusScores, texts: RepairPlusBatch) -> torch.Tensor:
    """Return the number of wanted tokens, and the number of those with the highest probability: [2]."""
    if scores.written is None:
        return scores.words.new_zeros(2, dtype=torch.float64)
    labels = texts.target_labels
    assert labels is not None
    return torch.stack([(labels != NONE).sum(), right_labels(scores.written, labels).sum()]).double()
