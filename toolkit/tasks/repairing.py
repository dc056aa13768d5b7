"""What the tasks that repair white space have in common; no task itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import torch

from toolkit.config.schema import Experiment
from toolkit.data.lists import Array
from toolkit.errors import DataError
from toolkit.metrics.spelling.counts import Counts
from toolkit.metrics.spelling.whitespace import WhitespaceScore
from toolkit.spelling_samples import layout
from toolkit.spelling_samples.prepared import SpellingSet
from toolkit.spelling_samples.samples import SpellingSamples
from toolkit.tasks.base import Evaluation
from toolkit.tasks.repair_batches import REPAIR_SUMS, repair_counts, repaired_by
from toolkit.tasks.spelling import SpellingTask
from toolkit.tokenization.tokenizer import load_tokenizer


class RepairingTask(SpellingTask):
    """Texts as characters; outputs begin with what to do with each of them (`repair_batches.classes_of`)."""

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
        # Two tokens are special.
        self._characters = experiment.data.max_length - 2
        self.output_width = self._characters

    def _repair_sums(
        self, scores: torch.Tensor, labels: torch.Tensor | None, tokens: torch.Tensor
    ) -> torch.Tensor:
        """The sums of REPAIR_SUMS of what scores [B, L, 3] say."""
        assert labels is not None
        return repair_counts(scores.argmax(-1), labels, tokens == self._space).sums

    def repair_score(self, evaluation: Evaluation) -> WhitespaceScore:
        """What was repaired, as counts."""
        sums = dict(zip(self.score_sums, evaluation.sums.tolist(), strict=True))
        found, wrong, missed, texts, f1, equal = (sums[name] for name in REPAIR_SUMS)
        return WhitespaceScore(
            counts=positives(found, wrong, missed), lines=round(texts), f1_sum=f1, equal=round(equal)
        )

    def _repaired(self, samples: SpellingSamples, outputs: Array) -> Iterator[str]:
        """Yield each text of a split as outputs [n, more than characters] repair it."""
        texts = samples.texts(np.arange(len(samples)))
        for (text, _), row in zip(texts, outputs, strict=True):
            yield repaired_by(text, row[: self._characters])


def positives(found: float, wrong: float, missed: float) -> Counts:
    """Counts of sums."""
    return Counts(true_positives=round(found), false_positives=round(wrong), false_negatives=round(missed))


def repair_facts(score: WhitespaceScore) -> dict[str, int]:
    """What was repaired, for a file of counts."""
    found = {name: getattr(score.counts, name) for name in Counts.__slots__}
    return found | {"texts": score.lines, "equal_texts": score.equal}
