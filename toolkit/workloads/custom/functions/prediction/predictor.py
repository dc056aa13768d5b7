"""Predict with a run of three functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from toolkit.analysis.prediction.predictor import RowFormat, UnfitRow
from toolkit.config.schema import Evaluation, Experiment
from toolkit.errors import UserError
from toolkit.run.run_dir import RunDir
from toolkit.system.output.few import shortened
from toolkit.task import Ragged, lists_of
from toolkit.training.numerics.rng import seeded
from toolkit.workloads.custom.functions.new_model import new_model
from toolkit.workloads.custom.functions.prediction.values import checked_predictions, values_of
from toolkit.workloads.custom.functions.reading.signatures import EXAMPLES
from toolkit.workloads.custom.functions.samples import collated, moved
from toolkit.workloads.custom.functions.user_code import PREDICT, UserCode, lacks_predict

_SAMPLE = "sample"
_SHOWN = 80


class FunctionsPredictor:
    """Makes samples with the user's `sample(row)`, and predicts batches with `predict(model, batch)`.

    Without `sample`, a number or a list of numbers becomes a tensor of floats. `data` is not called.
    """

    format = RowFormat()
    #: A batch holds consecutive rows: rows cannot be sorted by length, which only the user's code knows.
    batches_at_once = 1

    def __init__(self, run: RunDir, experiment: Experiment) -> None:
        self._seed = experiment.seed
        # The user's module, the constructor of the class, and the model draw what they drew in training.
        with seeded(self._seed):
            self._code = UserCode(experiment.task, run.code)
        with seeded(self._seed):
            self._code.find(PREDICT)
        self._section = experiment.model

    def model(self) -> nn.Module:
        with seeded(self._seed):
            return new_model(self._code, self._section)

    def sample(self, row: Any) -> Any:
        own = self._code.find(_SAMPLE)
        if own is None:
            return _numbers(row)
        try:
            return own(row)
        except Exception as error:
            raise UnfitRow(
                f"{self._describe(_SAMPLE, error)}, given {shortened(repr(row), _SHOWN)}"
            ) from error

    def predict(
        self, model: nn.Module, samples: Sequence[Any], settings: Evaluation, device: torch.device
    ) -> list[Any]:
        own = self._code.find(PREDICT)
        if own is None:
            raise UserError(lacks_predict(self._code.shown))
        batch = moved(self._collated(list(samples)), device)
        try:
            found = own(model, batch)
        except Exception as error:
            raise UserError(f"{self._describe(PREDICT, error)}{self._hint()}") from error
        checked = checked_predictions(found, len(samples), self._code.place(PREDICT))
        return list(values_of(lists_of(checked), are_lists=isinstance(checked, Ragged)))

    def _collated(self, samples: list[Any]) -> Any:
        own = self._code.find("collate")
        if own is None:
            return collated(samples, self._code.place(_SAMPLE))
        try:
            return own(samples)
        except Exception as error:
            raise UserError(f"{self._describe('collate', error)}{self._hint()}") from error

    def _describe(self, function: str, error: Exception) -> str:
        """Return the place and the reason of an error in a user's function."""
        return f"{self._code.place(function, error)}: {function} failed ({type(error).__name__}: {error})"

    def _hint(self) -> str:
        if self._code.find(_SAMPLE) is not None:
            return ""
        return (
            ". Without a function sample(row), a sample is a tensor of the numbers in a row. Define it so "
            "that a batch is as in training, with any value in place of labels"
        )


def _numbers(row: Any) -> torch.Tensor:
    """Return a number, or a list of numbers, as a tensor of floats. Raises UnfitRow for anything else."""
    if isinstance(row, int | float | list) and not isinstance(row, bool):
        try:
            return torch.tensor(row, dtype=torch.get_default_dtype())
        except (TypeError, ValueError, OverflowError):
            pass
    raise UnfitRow(
        f"found {shortened(repr(row), _SHOWN)}, expected a number or a list of numbers. "
        f"For other rows, define a function that makes a sample: {EXAMPLES[_SAMPLE]}"
    )
