"""What the tasks that detect spelling errors have in common; no task itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from toolkit.config.schema import Experiment
from toolkit.data.lists import Array
from toolkit.files import open_atomic, write_json
from toolkit.metrics.spelling.counts import Counts
from toolkit.metrics.spelling.detection import DetectionScore
from toolkit.models.spelling.batches import NONE, DetectionBatch
from toolkit.models.spelling.losses import summed_cross_entropy
from toolkit.rundir import RunDir
from toolkit.spelling.features import FEATURES
from toolkit.spelling_samples import layout
from toolkit.spelling_samples.prepared import SpellingSet
from toolkit.spelling_samples.samples import SpellingSamples
from toolkit.tasks.base import Evaluation, Loss, Score, build_model
from toolkit.tasks.correction_batches import on
from toolkit.tasks.spelling import SpellingTask, lines_of_files, no_errors

#: What `counts_of` counts.
COUNTS = (
    "true_positives", "false_positives", "false_negatives", "labels", "equal", "real_words", "found_real",
    "non_words", "found_non",
)  # fmt: skip
#: An error is what is more likely one than not.
THRESHOLD = 0.5
#: Output where a text has no more words.
NOTHING = -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledBatch:
    """Texts with their labels, and whether what is labelled is a real word (all False: unknown)."""

    texts: DetectionBatch
    real: torch.Tensor


class DetectionTask(SpellingTask):
    """Cross-entropy over right and wrong; scores are counts of what was found.

    Outputs are the probabilities of an error: of each word, -1 after the last one, or of the text.
    """

    #: Whether texts are labelled, not words.
    of_texts: ClassVar[bool]
    #: Name of the share of labels that are right.
    accuracy: ClassVar[str]
    train_sums = ("correct",)
    score_sums = ("loss", "count", *COUNTS)

    def __init__(self, experiment: Experiment, data: SpellingSet | None = None) -> None:
        super().__init__(experiment, data)
        # Every word has a token of its own, and two tokens are none of a word.
        self.output_width = 1 if self.of_texts else experiment.data.max_length - 2

    def model(self) -> nn.Module:
        return build_model(
            self._experiment,
            vocabulary_size=self._data.vocabulary_size,
            of_texts=self.of_texts,
            features=len(FEATURES),
        )

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> LabelledBatch:
        samples = self.splits[split]
        pieces = samples.rows(layout.PIECES, indices, layout.NOBODY)
        labels, real = self._labels(samples, indices)
        arrays = {
            "tokens": samples.rows(layout.TOKENS, indices, self._data.pad_id),
            "lengths": samples.lengths[indices].astype(np.int64),
            "pieces": np.where(pieces == layout.NOBODY, NONE, pieces),
            "words": samples.rows(layout.WORDS, indices, NONE),
            "labels": labels,
        }
        if self._experiment.model.word_features:
            arrays["features"] = samples.features(indices)
        texts = DetectionBatch(
            **{name: on(values, device) for name, values in arrays.items()},
            word_count=max(int(samples.sizes(layout.LABELS, indices).max(initial=0)), 1),
            real_tokens=int(arrays["lengths"].sum()),
        )
        return LabelledBatch(texts=texts, real=on(real, device))

    def _labels(self, samples: SpellingSamples, indices: Array) -> tuple[Array, Array]:
        """Labels, NONE where there is none, and whether what is labelled is a real word; of one shape."""
        if self.of_texts:
            errors = samples.errors[indices]
            return errors, np.zeros(errors.shape, dtype=bool)
        labels = samples.rows(layout.LABELS, indices, layout.UNKNOWN)
        labels = np.where(labels == layout.UNKNOWN, NONE, labels)
        known = self._data.has_dictionary
        return labels, samples.real_words(indices) if known else np.zeros(labels.shape, dtype=bool)

    def loss(self, model: nn.Module, batch: LabelledBatch) -> Loss:
        scores, labels = _scores(model, batch)
        found = summed_cross_entropy(scores, labels)
        correct = ((scores.argmax(-1) == labels) & (labels != NONE)).sum()
        return Loss(
            total=found.total, count=found.count, tokens=batch.texts.real_tokens, sums=correct[None].double()
        )

    def score(self, model: nn.Module, batch: LabelledBatch) -> Score:
        scores, labels = _scores(model, batch)
        found = summed_cross_entropy(scores, labels)
        probabilities = scores.float().softmax(-1)[..., 1]
        head = torch.stack([found.total.double(), found.total.new_tensor(found.count, dtype=torch.float64)])
        counts = counts_of(probabilities > THRESHOLD, labels, batch.real)
        return Score(sums=torch.cat([head, counts]), outputs=self._outputs(probabilities, batch))

    def _outputs(self, probabilities: torch.Tensor, batch: LabelledBatch) -> torch.Tensor:
        if self.of_texts:
            return probabilities[:, None]
        words = batch.texts.words.max(1, keepdim=True).values + 1
        places = torch.arange(probabilities.shape[1], device=words.device)
        outputs = probabilities.new_full((len(probabilities), self.output_width), NOTHING)
        outputs[:, : len(places)] = probabilities.masked_fill(places >= words, NOTHING)
        return outputs

    def train_metrics(self, sums: Mapping[str, float], count: float) -> dict[str, float]:
        return {self.accuracy: sums["correct"] / count}

    def detection_score(self, evaluation: Evaluation) -> DetectionScore:
        """What was found, as counts."""
        return score_of(evaluation.sums[2:])

    def metrics(self, split: str, evaluation: Evaluation) -> dict[str, float]:
        total, count = evaluation.sums[:2]
        score = self.detection_score(evaluation)
        return {
            "loss": float(total / count) if count else 0.0,
            "f1": score.counts.f1,
            "precision": score.counts.precision,
            "recall": score.counts.recall,
            **self.further_metrics(score),
        }

    def further_metrics(self, score: DetectionScore) -> dict[str, float]:
        """Those that are a task's own."""
        raise NotImplementedError

    def write_report(self, run: RunDir, split: str, evaluation: Evaluation) -> None:
        run.artifacts.mkdir(parents=True, exist_ok=True)
        with open_atomic(run.detections(split)) as stream:
            stream.writelines(f"{line}\n" for line in self._lines(split, evaluation.outputs))
        counts = dict(zip(COUNTS, evaluation.sums[2:].round().astype(int).tolist(), strict=True))
        left_out = sum(1 for _ in self.splits[split].left_out())
        facts: dict[str, Any] = {"split": split, "texts": len(self.splits[split]), "left_out": left_out}
        facts |= {"counts": counts, "metrics": self.metrics(split, evaluation)}
        write_json(run.detection_counts(split), facts)

    def _lines(self, split: str, outputs: Array) -> Iterator[str]:
        """Labels of each line of the split's files; no errors where a line was left out."""
        none = (lambda text: "0") if self.of_texts else no_errors
        return lines_of_files(self.splits[split], map(self._line, outputs), none)

    def _line(self, row: Array) -> str:
        return " ".join("1" if each > THRESHOLD else "0" for each in row[row != NOTHING].tolist())


def _scores(model: nn.Module, batch: LabelledBatch) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores and labels of a batch; the rows come first, as torch's DataParallel cuts what comes first."""
    tokens, labels = batch.texts.tokens, batch.texts.labels
    assert labels is not None
    scores: Any = model(torch.arange(len(tokens), device=tokens.device), batch.texts)
    return scores.float(), labels


def counts_of(found: torch.Tensor, labels: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """The counts of what was found, in the order of COUNTS, computed on the device.

    found   [...] what is called wrong
    labels  [...] NONE where there is none
    real    [...] whether it is a real word
    """
    known, wrong = labels != NONE, labels == 1
    right = found & wrong
    facts = [
        right, found & known & ~wrong, wrong & ~found, known, known & (found == wrong), wrong & real,
        right & real, wrong & ~real, right & ~real,
    ]  # fmt: skip
    return torch.stack([fact.sum() for fact in facts]).double()


def score_of(sums: Array) -> DetectionScore:
    """Counts that were added up, in the order of COUNTS."""
    counts = dict(zip(COUNTS, sums.round().astype(int).tolist(), strict=True))
    positives = {name: counts.pop(name) for name in Counts.__slots__}
    return DetectionScore(counts=Counts(**positives), **counts)
