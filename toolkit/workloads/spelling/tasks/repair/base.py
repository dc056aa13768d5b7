"""Common parts of the tasks that repair white space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import torch

from toolkit.config.schema import Experiment
from toolkit.errors import DataError
from toolkit.task import Evaluation
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.prepared import SpellingSet
from toolkit.workloads.spelling.data.samples.samples import SpellingSamples
from toolkit.workloads.spelling.metrics.counts import Counts
from toolkit.workloads.spelling.metrics.whitespace import WhitespaceScore
from toolkit.workloads.spelling.tasks.base import SpellingTask
from toolkit.workloads.spelling.tasks.repair.batches import REPAIR_SUMS, repair_counts, repaired_by
from toolkit.workloads.spelling.tokenizers.tokenizer import load_tokenizer

#: The output of what to do with each character.
CLASSES = "classes"


class RepairingTask(SpellingTask):
    """Texts as characters; the output `classes` is what to do with each of them (`classes_of`)."""

    train_sums: ClassVar[tuple[str, ...]]
    score_sums: ClassVar[tuple[str, ...]]

    def __init__(self, experiment: Experiment, data: SpellingSet | None = None) -> None:
        super().__init__(experiment, data)
        space = load_tokenizer(self._data.path / layout.TOKENIZER).space
        if space is None:
            raise DataError(
                f"data.tokenizer_path: {experiment.data.tokenizer_path} has tokens of many characters, "
                f"expected one of single characters for {experiment.task.kind} (`stk spelling tokenizer`)"
            )
        self._space = space

    def _repair_sums(self, scores: torch.Tensor, labels: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The sums of REPAIR_SUMS of what scores [B, L, 3] say."""
        return repair_counts(scores.argmax(-1), labels, tokens == self._space)

    def repair_score(self, evaluation: Evaluation) -> WhitespaceScore:
        """Return the counts of a repair."""
        sums = dict(zip(self.score_sums, evaluation.sums.tolist(), strict=True))
        found, wrong, missed, texts, f1, equal = (sums[name] for name in REPAIR_SUMS)
        return WhitespaceScore(
            counts=positives(found, wrong, missed), lines=round(texts), f1_sum=f1, equal=round(equal)
        )

    def _repaired(self, samples: SpellingSamples, evaluation: Evaluation) -> Iterator[str]:
        """Yield each text of a split as an evaluation repairs it."""
        texts = samples.texts(np.arange(len(samples)))
        for (text, _), classes in zip(texts, evaluation.outputs[CLASSES], strict=True):
            yield repaired_by(text, classes)


def positives(found: float, wrong: float, missed: float) -> Counts:
    """Counts of sums."""
    return Counts(true_positives=round(found), false_positives=round(wrong), false_negatives=round(missed))


def repair_facts(score: WhitespaceScore) -> dict[str, int]:
    """Return the counts of a repair, for a file."""
    found = {name: getattr(score.counts, name) for name in Counts.__slots__}
    return found | {"texts": score.lines, "equal_texts": score.equal}
