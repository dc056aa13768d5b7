"""What the tasks that repair white space have in common; no task itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from heapq import merge
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from torch import nn

from toolkit.config.kinds import SpellingTexts
from toolkit.config.schema import Experiment
from toolkit.data.lists import Array
from toolkit.errors import DataError
from toolkit.metrics.spelling.counts import Counts
from toolkit.metrics.spelling.whitespace import WhitespaceScore
from toolkit.models.export import export_model
from toolkit.rundir import RunDir
from toolkit.spelling.words import words_of
from toolkit.spelling_samples import layout
from toolkit.spelling_samples.prepared import SpellingSet, prepare
from toolkit.spelling_samples.samples import SpellingSamples
from toolkit.spelling_samples.sources import data_sets
from toolkit.tasks.base import Evaluation, Report
from toolkit.tasks.repair_batches import REPAIR_SUMS, repair_counts, repaired_by
from toolkit.tokenization.tokenizer import load_tokenizer


class RepairingTask:
    """Texts as characters; outputs begin with what to do with each of them (`repair_batches.classes_of`)."""

    train_sums: ClassVar[tuple[str, ...]]
    score_sums: ClassVar[tuple[str, ...]]

    @classmethod
    def prepare(cls, experiment: Experiment, report: Report | None = None) -> str:
        return prepare(experiment.data, report).summary()

    def __init__(self, experiment: Experiment, data: SpellingSet | None = None) -> None:
        self._experiment = experiment
        self._data = data = data or prepare(experiment.data)
        self.prepared = data.path
        self.fingerprint = data.fingerprint
        self.summary = data.summary()
        self.splits: Mapping[str, SpellingSamples] = {name: data.split(name) for name in data.splits}
        space = load_tokenizer(data.path / layout.TOKENIZER).space
        if space is None:
            raise DataError(
                f"data.tokenizer_path: {experiment.data.tokenizer_path} has tokens of many characters, "
                f"expected one of single characters for {experiment.task.kind} (`stk spelling tokenizer`)"
            )
        self._space = space
        # Two tokens are special.
        self._characters = experiment.data.max_length - 2
        self.output_width = self._characters

    def on(self, data: SpellingTexts, report: Report | None = None) -> Self:
        known = prepare(data, report, base=self._data)
        return type(self)(replace(self._experiment, data=data), known)

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

    def _with_left_out(
        self, samples: SpellingSamples, lines: Iterator[str], *, as_labels: bool = False
    ) -> Iterator[str]:
        """Yield what there is for each line of the split's files; where it was left out, the text itself.

        as_labels  or, if the lines are labels, that none of its words has an error
        """
        made = (
            (source, line, text)
            for source, line, text in zip(
                samples.sources.tolist(), samples.lines.tolist(), lines, strict=True
            )
        )
        left_out = (
            (source, line, " ".join("0" for _ in words_of(text)) if as_labels else text)
            for source, line, text in samples.left_out_texts()
        )
        for _, _, text in merge(made, left_out):
            yield f"{text}\n"

    def export(self, run: RunDir, model: nn.Module) -> None:
        root = Path(data_sets(self._experiment.data)[0]).stem
        export_model(run, model, root, self._data.tokenizer_files)


def positives(found: float, wrong: float, missed: float) -> Counts:
    """Counts of sums."""
    return Counts(true_positives=round(found), false_positives=round(wrong), false_negatives=round(missed))


def repair_facts(score: WhitespaceScore) -> dict[str, int]:
    """What was repaired, for a file of counts."""
    found = {name: getattr(score.counts, name) for name in Counts.__slots__}
    return found | {"texts": score.lines, "equal_texts": score.equal}
