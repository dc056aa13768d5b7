"""Correction of spelling errors: all words of a text are written at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from toolkit.data.ragged import Array
from toolkit.errors import DataError
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.samples import SpellingSamples
from toolkit.workloads.spelling.data.texts.words import words_of
from toolkit.workloads.spelling.models.batches import NONE, WordsCorrectionBatch
from toolkit.workloads.spelling.models.search import Written, write_words
from toolkit.workloads.spelling.tasks.base import on
from toolkit.workloads.spelling.tasks.correction.base import CorrectionTask
from toolkit.workloads.spelling.tasks.correction.batches import limits_of, text_of_words, word_targets
from toolkit.workloads.spelling.tokenizers.tokenizer import load_tokenizer


class SecWordsNmtTask(CorrectionTask[WordsCorrectionBatch]):
    """One sequence for each word.

    Texts whose target has other words than they have teach nothing, word by word: they are left out, but for
    the test set, where they are scored as what is written of them.
    """

    def write(self, model: Any, batch: WordsCorrectionBatch, texts: Sequence[str]) -> list[list[Written]]:
        limits = limits_of(self._output, self._experiment.model.max_word_length)
        return write_words(model, batch, self._search, limits)

    def _batch(self, samples: SpellingSamples, indices: Array, device: torch.device) -> WordsCorrectionBatch:
        pieces = samples.rows(layout.PIECES, indices, layout.NO_PIECE)
        is_special = pieces == layout.NO_PIECE
        of_pieces = samples.rows(layout.WORDS, indices, NONE)
        of_tokens = np.take_along_axis(of_pieces, np.where(is_special, 0, pieces), axis=1)
        words = samples.rows(layout.OUTPUT_WORDS, indices, NONE)
        words[~self._same_words(samples, indices)] = NONE
        targets, numbers, labels = word_targets(
            samples.rows(layout.OUTPUTS, indices, NONE),
            words,
            self._output.padding,
            self._output.begin,
            self._output.end,
        )
        return WordsCorrectionBatch(
            **self._fields(samples, indices, device),
            words=on(np.where(is_special, NONE, of_tokens), device),
            targets=on(targets, device),
            target_words=on(numbers, device),
            labels=on(labels, device),
            labelled=int((labels != NONE).sum()),
        )

    def _text(self, text: str, units: Sequence[Written]) -> str:
        return text_of_words(units, words_of(text), self._output)

    def _fits(self, samples: SpellingSamples) -> np.ndarray:
        every = np.arange(len(samples))
        written = samples.sizes(layout.OUTPUTS, every) + samples.sizes(layout.LABELS, every)
        fits: np.ndarray = written <= self._experiment.model.max_output_length
        fits &= self._same_words(samples, every)
        return fits

    def _misfit(self) -> str:
        most = self._experiment.model.max_output_length
        return (
            f"what they should say has more tokens than model.max_output_length, {most} with an end sign for "
            "each word, or not as many words as they have"
        )

    def _same_words(self, samples: SpellingSamples, indices: Array) -> np.ndarray:
        """Whether each text has as many words as its target, [n]."""
        targets = samples.lists[layout.OUTPUT_WORDS].lasts(samples.ids[indices], NONE) + 1
        same: np.ndarray = samples.sizes(layout.LABELS, indices) == targets
        return same

    def _check(self) -> None:
        reads = load_tokenizer(self.prepared / layout.TOKENIZER)
        if reads.reads_spaces:
            raise DataError(
                f"{self._experiment.data.tokenizer_path}: this tokenizer reads characters, expected one that "
                "reads words (`stk spelling tokenizer bpe`): for texts whose white space is wrong, there is "
                "sec_nmt"
            )
