"""Detection and correction of spelling errors in texts whose white space may be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from toolkit.beginning import load_whole
from toolkit.config.schema import Experiment
from toolkit.data.lists import Array
from toolkit.decoding.language_model import Limits
from toolkit.earlier import find_weights, repair_experiment
from toolkit.files import open_atomic, write_json
from toolkit.metrics.slice_score import ratio
from toolkit.metrics.spelling.correction import score_corrections
from toolkit.metrics.spelling.detection import DetectionScore
from toolkit.models.spelling.batches import NONE, RepairPlusBatch
from toolkit.models.spelling.losses import losses_of_texts
from toolkit.models.spelling.repair_plus import PlusScores, TokenizationRepairPlus
from toolkit.models.spelling.searching import Search, Written, write_words
from toolkit.rundir import RunDir
from toolkit.spelling.features import FEATURES
from toolkit.spelling.words import normalised, words_of
from toolkit.spelling_samples import layout
from toolkit.spelling_samples.prepared import SpellingSet
from toolkit.spelling_samples.samples import SpellingSamples
from toolkit.tasks.base import Evaluation, Loss, Score, build_model
from toolkit.tasks.correction_batches import on, pack, text_of, word_targets
from toolkit.tasks.detection import COUNTS, THRESHOLD, counts_of, score_of
from toolkit.tasks.plus_outputs import PlusOutputs
from toolkit.tasks.plus_reading import PlusReader
from toolkit.tasks.repair_batches import NOTHING, REPAIR_SUMS, classes_of, known_labels, padded, plus_batch
from toolkit.tasks.repairing import RepairingTask, repair_facts
from toolkit.tasks.spelling import lines_of_files, no_errors
from toolkit.tokenization.tokenizer import TextTokenizer, load_tokenizer

#: The split whose words are really written.
_WRITTEN = "test"
_KEY = "model.repair_run"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlusBatch:
    """Texts with all that is known of them.

    real   [B, W] whether each word is a real one (all False: unknown)
    write  whether their words are to be written
    """

    texts: RepairPlusBatch
    real: torch.Tensor
    write: bool


class TokenizationRepairPlusTask(RepairingTask):
    """Right or wrong, for each word of the repaired text; and what it should be, if the model writes.

    The loss of a text is the mean cross-entropy of its words, plus that of the tokens that are to be written,
    plus that of its characters where the repair is learnt, too; together times its words, for the count is
    that of words. So a step's loss is a mean over words, whatever batches and ranks it is made of.

    The words that are read are those of the right white space, in evaluations, too: what the model itself
    would repair is told beside them, and read when it is used.

    Outputs are what to do with each character, then the probability of an error of each word, then what is
    written (`correction_batches.pack`): of the test set alone.
    """

    train_sums = ("correct",)
    score_sums = ("loss", "count", *COUNTS, *REPAIR_SUMS, "tokens", "equal_tokens")

    def __init__(self, experiment: Experiment, data: SpellingSet | None = None) -> None:
        super().__init__(experiment, data)
        self._repair = repair_experiment(experiment.model.repair_run).model
        self._output: TextTokenizer | None = None
        if experiment.model.num_sec_layers:
            self._output = load_tokenizer(self._data.path / layout.OUTPUT_TOKENIZER)
        self._outputs = PlusOutputs(characters=self._characters, tokenizer=self._output)
        # A sign for each word that is written, even where their tokens find no room.
        room = max(experiment.model.sec_max_output_length, self._characters) if self._output else 0
        self.output_width = self._outputs.width + room

    def model(self) -> nn.Module:
        config = self._experiment.model
        built = build_model(
            self._experiment,
            repair=self._repair,
            vocabulary_size=self._data.vocabulary_size,
            output_vocabulary_size=self._data.output_vocabulary_size,
            features=len(FEATURES),
        )
        assert isinstance(built, TokenizationRepairPlus)
        load_whole(_KEY, find_weights(_KEY, config.repair_run), built.repair)
        return built

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> PlusBatch:
        samples = self.splits[split]
        config = self._experiment.model
        texts = plus_batch(
            samples.rows(layout.TOKENS, indices, self._data.pad_id),
            samples.lengths[indices],
            samples.rows(layout.PIECES, indices, layout.NOBODY),
            samples.rows(layout.WORDS, indices, NONE),
            device,
            features=samples.features(indices) if config.word_features else None,
            word_count=int(samples.sizes(layout.LABELS, indices).max(initial=0)),
        )
        labels = known_labels(samples.rows(layout.LABELS, indices, layout.UNKNOWN), device)
        known = self._data.has_dictionary
        real = samples.real_words(indices) if known else np.zeros(labels.shape, dtype=bool)
        texts = replace(
            texts,
            labels=labels,
            repair_labels=known_labels(samples.rows(layout.REPAIRS, indices, layout.UNKNOWN), device),
        )
        if self._output is not None:
            texts = self._with_targets(texts, samples, indices, self._output)
        return PlusBatch(texts=texts, real=on(real, device), write=split == _WRITTEN)

    def _with_targets(
        self, texts: RepairPlusBatch, samples: SpellingSamples, indices: Array, output: TextTokenizer
    ) -> RepairPlusBatch:
        """Add what is to be written of texts with as many words as their targets, and not too many tokens."""
        device = texts.tokens.device
        outputs = samples.rows(layout.OUTPUTS, indices, NONE)
        words = samples.rows(layout.OUTPUT_WORDS, indices, NONE)
        count = samples.sizes(layout.LABELS, indices)
        written = samples.sizes(layout.OUTPUTS, indices) + count
        fits = written <= self._experiment.model.sec_max_output_length
        words[(words.max(1) + 1 != count) | ~fits] = NONE
        made = word_targets(outputs, words, output.padding, output.begin, output.end)
        targets, numbers, labels = (on(each, device) for each in made)
        return replace(texts, targets=targets, target_words=numbers, target_labels=labels)

    def loss(self, model: nn.Module, batch: PlusBatch) -> Loss:
        scores, labels = _scores(model, batch.texts), batch.texts.labels
        assert labels is not None
        total, count = self._loss(scores, batch.texts)
        correct = ((scores.words.argmax(-1) == labels) & (labels != NONE)).sum()
        return Loss(total=total, count=count, tokens=batch.texts.real_tokens, sums=correct[None].double())

    def _loss(self, scores: PlusScores, texts: RepairPlusBatch) -> tuple[torch.Tensor, int]:
        assert texts.labels is not None
        assert texts.repair_labels is not None
        total, words = losses_of_texts(scores.words, texts.labels)
        if scores.written is not None:
            assert texts.target_labels is not None
            written, tokens = losses_of_texts(scores.written, texts.target_labels)
            total = total + words * written / tokens.clamp(min=1)
        if not self._experiment.model.fix_tokenization_repair:
            weights = self._repair.class_weights
            repair, characters = losses_of_texts(scores.repair, texts.repair_labels, weights)
            total = total + words * repair / characters.clamp(min=1)
        return total.sum(), int(words.sum())

    def score(self, model: Any, batch: PlusBatch) -> Score:
        texts = batch.texts
        scores, labels = _scores(model, texts), texts.labels
        assert labels is not None
        total, count = self._loss(scores, texts)
        probabilities = scores.words.softmax(-1)[..., 1]
        head = torch.stack([total.double(), total.new_tensor(count, dtype=torch.float64)])
        sums = [head, counts_of(probabilities > THRESHOLD, labels, batch.real)]
        sums += [self._repair_sums(scores.repair, texts.repair_labels, texts.tokens), _tokens(scores, texts)]
        words = texts.words.max(1, keepdim=True).values + 1
        places = torch.arange(probabilities.shape[1], device=words.device)
        columns = [
            classes_of(scores.repair, texts.lengths, self._characters),
            padded(probabilities.masked_fill(places >= words, NOTHING), self._characters),
        ]
        if self._output is not None:
            room = self.output_width - self._outputs.width
            rows = pack(self.write(model, texts), room) if batch.write else np.zeros((len(words), 0))
            columns.append(padded(torch.from_numpy(rows).to(probabilities), room))
        return Score(sums=torch.cat(sums), outputs=torch.cat(columns, dim=1))

    def write(self, model: Any, texts: RepairPlusBatch) -> list[list[Written]]:
        """What a model in evaluation mode makes of these texts: for each its words."""
        assert self._output is not None
        task = self._experiment.task
        limits = Limits(
            begin=self._output.begin, end=self._output.end, length=self._experiment.model.max_word_length
        )
        return write_words(model, texts, Search(kind=task.search, width=task.beam_width), limits)

    def correct(self, model: Any, split: str, indices: np.ndarray, device: torch.device) -> list[str]:
        """What a model in evaluation mode makes of these texts of a split.

        With white space as it repairs it, and the words that this gives as it writes them, if it writes.
        """
        texts = [text for text, _ in self.splits[split].texts(indices)]
        repaired = self._reader.repair(model, texts, device)
        if self._output is None:
            return repaired
        written = self.write(model, self._reader.batch(texts, repaired, device))
        words = map(words_of, repaired)
        return [text_of(units, own, self._output) for units, own in zip(written, words, strict=True)]

    def repair(self, model: Any, split: str, indices: np.ndarray, device: torch.device) -> list[str]:
        """The same with nothing but their white space repaired."""
        texts = [text for text, _ in self.splits[split].texts(indices)]
        return self._reader.repair(model, texts, device)

    def detect(
        self, model: nn.Module, split: str, indices: np.ndarray, device: torch.device
    ) -> list[list[float]]:
        """How likely each word of these texts, as they stand, has an error."""
        texts = self.collate(split, indices, device).texts
        probabilities = _scores(model, texts).words.softmax(-1)[..., 1].cpu().numpy()
        counts = (texts.words.max(1).values + 1).tolist()
        return [row[:count].tolist() for row, count in zip(probabilities, counts, strict=True)]

    @cached_property
    def _reader(self) -> PlusReader:
        # Evaluations do without its dictionary.
        return PlusReader.of(self._data, with_features=self._experiment.model.word_features)

    def train_metrics(self, sums: Mapping[str, float], count: float) -> dict[str, float]:
        return {"word_accuracy": sums["correct"] / count}

    def detection_score(self, evaluation: Evaluation) -> DetectionScore:
        """What was found, as counts."""
        return score_of(evaluation.sums[2 : 2 + len(COUNTS)])

    def metrics(self, split: str, evaluation: Evaluation) -> dict[str, float]:
        """Metrics of a split; only words that were written have those of corrections."""
        sums = dict(zip(self.score_sums, evaluation.sums.tolist(), strict=True))
        score = self.detection_score(evaluation)
        found = {
            "loss": ratio(sums["loss"], sums["count"]),
            "f1": score.counts.f1,
            "precision": score.counts.precision,
            "recall": score.counts.recall,
            "word_accuracy": score.accuracy,
            "repair_f1": self.repair_score(evaluation).counts.f1,
        }
        if self._experiment.data.dictionary:
            found |= {"real_word_rate": score.real_word_rate, "non_word_rate": score.non_word_rate}
        if self._output is not None:
            found["token_accuracy"] = ratio(sums["equal_tokens"], sums["tokens"])
            if split == _WRITTEN:
                found["correction_f1"] = self._correction_f1(split, evaluation)
        return found

    def _correction_f1(self, split: str, evaluation: Evaluation) -> float:
        """F1 of what was written in place of the text that was read, white space included."""
        samples = self.splits[split]
        made = self._outputs.corrections(samples, evaluation.outputs)
        texts = samples.texts(np.arange(len(samples)))
        lines = [
            (text, written, normalised(target))
            for (text, target), written in zip(texts, made, strict=True)
            if target is not None
        ]
        read, written, golds = zip(*lines, strict=True) if lines else ((), (), ())
        return score_corrections(read, written, golds).counts.f1

    def write_report(self, run: RunDir, split: str, evaluation: Evaluation) -> None:
        run.artifacts.mkdir(parents=True, exist_ok=True)
        samples, rows, outputs = self.splits[split], evaluation.outputs, self._outputs
        facts: dict[str, Any] = {"split": split, "texts": len(samples)}
        facts["left_out"] = sum(1 for _ in samples.left_out())
        counts = evaluation.sums[2 : 2 + len(COUNTS)].round().astype(int).tolist()
        facts["detection"] = dict(zip(COUNTS, counts, strict=True))
        facts["repair"] = repair_facts(self.repair_score(evaluation))
        write_json(run.repair_counts(split), facts | {"metrics": self.metrics(split, evaluation)})
        files = {
            run.repairs(split): self._repaired(samples, rows),
            run.detections(split): (" ".join(map(str, outputs.labels(row))) for row in rows),
        }
        if self._output is not None and split == _WRITTEN:
            files[run.corrections(split)] = outputs.corrections(samples, rows)
        for path, lines in files.items():
            of_left_out = no_errors if path == run.detections(split) else str
            with open_atomic(path) as stream:
                stream.writelines(f"{line}\n" for line in lines_of_files(samples, lines, of_left_out))


def _scores(model: nn.Module, batch: RepairPlusBatch) -> PlusScores:
    """What the model says; the rows come first, as torch's DataParallel cuts what comes first."""
    found: Any = model(torch.arange(len(batch.tokens), device=batch.tokens.device), batch)
    words, repair, written = found
    return PlusScores(
        words=words.float(), repair=repair.float(), written=None if written is None else written.float()
    )


def _tokens(scores: PlusScores, texts: RepairPlusBatch) -> torch.Tensor:
    """Tokens that are to be written, and those that are the most probable ones: [2]."""
    if scores.written is None:
        return scores.words.new_zeros(2, dtype=torch.float64)
    labels = texts.target_labels
    assert labels is not None
    known = labels != NONE
    right = known & (scores.written.argmax(-1) == labels)
    return torch.stack([known.sum(), right.sum()]).double()
