"""Correction of spelling errors: all words of a text are written at once, each separately."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from toolkit.data.ragged import Array
from toolkit.errors import DataError
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.samples import SpellingSamples
from toolkit.workloads.spelling.models.batches import NONE, CorrectionBatch, WordsCorrectionBatch
from toolkit.workloads.spelling.models.search import Written, write_words
from toolkit.workloads.spelling.tasks.base import on
from toolkit.workloads.spelling.tasks.correction.base import CorrectionTask
from toolkit.workloads.spelling.tasks.correction.batches import (
    learnable,
    limits_of,
    targets_of_words,
    text_of_words,
)
from toolkit.workloads.spelling.tokenizers.tokenizer import load_tokenizer


class SecWordsNmtTask(CorrectionTask):
    """Writes one sequence for each word.

    Texts with a different number of words than their targets cannot be learnt word by word, and are left out.
    The test set keeps these texts: their corrections are scored.
    """

    def write(self, model: Any, batch: CorrectionBatch, texts: Sequence[str]) -> list[list[Written]]:
        limits = limits_of(self._output, self._experiment.model.max_word_length)
        return write_words(model, batch, self._search, limits)

    def _batch(self, samples: SpellingSamples, indices: Array, device: torch.device) -> WordsCorrectionBatch:
        pieces = samples.rows(layout.PIECES, indices, layout.NO_PIECE)
        is_special = pieces == layout.NO_PIECE
        of_pieces = samples.rows(layout.WORDS, indices, NONE)
        of_tokens = np.take_along_axis(of_pieces, np.where(is_special, 0, pieces), axis=1)
        targets, numbers, labels = targets_of_words(samples, indices, self._output)
        return WordsCorrectionBatch(
            **self._fields(samples, indices, device),
            words=on(np.where(is_special, NONE, of_tokens), device),
            targets=on(targets, device),
            target_words=on(numbers, device),
            labels=on(labels, device),
            labelled=int((labels != NONE).sum()),
        )

    def _text(self, text: str, units: Sequence[Written]) -> str:
        return text_of_words(units, text.split(), self._output)

    def _fits(self, samples: SpellingSamples) -> np.ndarray:
        return learnable(samples, np.arange(len(samples)), self._experiment.model.max_output_length)

    def _misfit(self) -> str:
        most = self._experiment.model.max_output_length
        return (
            f"their targets have more tokens than model.max_output_length, {most} with an end token for each "
            "word, or another number of words"
        )

    def _check(self) -> None:
        reads = load_tokenizer(self.prepared / layout.TOKENIZER)
        if reads.reads_spaces:
            raise DataError(
                f"{self._experiment.data.tokenizer_path}: this tokenizer reads characters, expected one that "
                "reads words (`stk spelling tokenizer bpe`); for texts with wrong white space, use sec_nmt"
            )
