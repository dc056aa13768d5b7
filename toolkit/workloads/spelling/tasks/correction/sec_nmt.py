"""Correction of spelling errors: the model writes the whole text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from toolkit.data.ragged import Array
from toolkit.errors import DataError
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.samples import SpellingSamples
from toolkit.workloads.spelling.models.batches import NONE, CorrectionBatch
from toolkit.workloads.spelling.models.search import Written
from toolkit.workloads.spelling.tasks.base import on
from toolkit.workloads.spelling.tasks.correction.base import CorrectionTask
from toolkit.workloads.spelling.tasks.correction.batches import limits_of, text_of, text_targets

#: A tokenizer that writes texts must decode this text.
_PROBE = "a b"
#: A correction has at most this multiple of the tokens of the text, plus this number.
_TIMES, _MORE = 2, 16


class SecNmtTask(CorrectionTask):
    """Writes one sequence for each text; words may move."""

    @torch.no_grad()
    def write(self, model: Any, batch: CorrectionBatch, texts: Sequence[str]) -> list[list[Written]]:
        # A longer output is not a correction.
        lengths = [_TIMES * len(self._output.encode_words(text)[0]) + _MORE for text in texts]
        limits = limits_of(self._output, self._experiment.model.max_output_length, lengths)
        return [[each] for each in self._search.write(model.reading(batch), limits)]

    def _batch(self, samples: SpellingSamples, indices: Array, device: torch.device) -> CorrectionBatch:
        outputs = samples.rows(layout.OUTPUTS, indices, NONE)
        sizes = samples.sizes(layout.OUTPUTS, indices)
        targets, labels = text_targets(outputs, sizes, self._output)
        return CorrectionBatch(
            **self._fields(samples, indices, device),
            targets=on(targets, device),
            labels=on(labels, device),
            labelled=int((labels != NONE).sum()),
        )

    def _text(self, text: str, units: Sequence[Written]) -> str:
        (unit,) = units
        return text_of(unit, text, self._output)

    def _fits(self, samples: SpellingSamples) -> np.ndarray:
        sizes = samples.sizes(layout.OUTPUTS, np.arange(len(samples)))
        fits: np.ndarray = sizes < self._experiment.model.max_output_length
        return fits

    def _misfit(self) -> str:
        most = self._experiment.model.max_output_length
        return f"their targets have more tokens than model.max_output_length, {most} with the end token"

    def _check(self) -> None:
        tokens, _ = self._output.encode_words(_PROBE)
        if self._output.decode(tokens) != _PROBE:
            raise DataError(
                f"{self._experiment.data.output_tokenizer_path}: this tokenizer writes words without the "
                "spaces between them, expected one that writes texts: BPE (`stk spelling tokenizer bpe`)"
            )
