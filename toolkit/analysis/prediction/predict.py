"""Predict the rows of an input in chunks, never the whole input at once."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import torch
from torch import nn

from toolkit.analysis.prediction.formats import JSON_LINES
from toolkit.analysis.prediction.load import open_run
from toolkit.analysis.prediction.output import writer
from toolkit.analysis.prediction.predictor import Predictor, UnfitRow
from toolkit.analysis.prediction.request import Request
from toolkit.analysis.prediction.rows import Row, rows_of
from toolkit.analysis.prediction.source import TextLines, opened
from toolkit.config import load_to_run
from toolkit.config.schema import Evaluation, Experiment
from toolkit.distributed.devices import choose_device
from toolkit.errors import DataError, UserError
from toolkit.files import open_atomic
from toolkit.run import folder_trust
from toolkit.run.run_dir import RunDir
from toolkit.training.numerics.arithmetic import autocast_dtype, guest_arithmetic, set_arithmetic

#: Samples of a batch if the run's batch size counts tokens instead.
_BATCH = 256

#: The predictions for some samples, in their order.
Predict = Callable[[Sequence[object]], list[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """An open run that predicts rows.

    at_once  maximum number of rows that are read before they are predicted
    """

    predictor: Predictor
    predict: Predict
    at_once: int

    def parts(self, lines: TextLines, read_as: str) -> Iterator[list[object]]:
        """Yield the predictions for the rows of an input, some rows at a time. Raises UserError, DataError.

        read_as   one of toolkit.analysis.prediction.formats.INPUTS
        """
        rows = rows_of(lines, read_as, self.predictor.format)
        return self.predictions(rows, lines.name, lines.are_at_hand)

    def predictions(
        self, rows: Iterable[Row], name: str, are_at_hand: Callable[[], bool] = lambda: True
    ) -> Iterator[list[object]]:
        """Yield the prediction for each row, in their order, some rows at a time. Memory: that of these rows.

        name         of the input, for messages
        are_at_hand  whether further rows can be read without waiting; if not, the rows so far are predicted
        Raises UserError, which names the lines.
        """
        numbers: list[int] = []
        samples: list[object] = []
        for row in rows:
            try:
                samples.append(self.predictor.sample(row.value))
            except UnfitRow as error:
                raise DataError(f"{name}:{row.line}: {error}") from error
            numbers.append(row.line)
            if len(samples) == self.at_once or not are_at_hand():
                yield self._predicted(samples, numbers, name)
                numbers, samples = [], []
        if samples:
            yield self._predicted(samples, numbers, name)

    def _predicted(self, samples: Sequence[object], numbers: Sequence[int], name: str) -> list[object]:
        try:
            found = self.predict(samples)
        except UserError as error:
            raise UserError(f"{name}, rows of lines {numbers[0]} to {numbers[-1]}: {error}") from error
        assert len(found) == len(samples), f"{len(found)} predictions of {len(samples)} samples"
        return found


def answering(run: RunDir, batch_size: int | None) -> Answering:
    """Open a finished run. Raises UserError, DataError, CheckpointError.

    batch_size  samples in a batch; None: as in the run's evaluations
    """
    experiment = load_to_run(run.config)
    set_arithmetic(experiment)
    return _answering(run, experiment, batch_size)


def _answering(run: RunDir, experiment: Experiment, batch_size: int | None) -> Answering:
    predictor, model = open_run(run, experiment)
    settings = experiment.evaluation
    if batch_size is not None:
        settings = replace(settings, batch_size=batch_size, batch_max_length=None)
    predict = _on_device(predictor, model, experiment, settings)
    at_once = predictor.batches_at_once * (settings.batch_size or _BATCH)
    return Answering(predictor=predictor, predict=predict, at_once=at_once)


def answer(run: RunDir, request: Request, output: TextIO) -> None:
    """Write the predictions for a request.

    output   for a request without an output file
    Raises UserError, DataError, CheckpointError; an existing output file then stays unchanged.
    """
    found = answering(run, request.batch_size)
    with ExitStack() as stack:
        path = None if request.file is None else Path(request.file)
        # JSON from a program is UTF-8, also if the run's files have another encoding.
        is_piped = path is None and request.input == JSON_LINES
        encoding = "utf-8" if is_piped else found.predictor.format.encoding
        lines = stack.enter_context(opened(path, encoding))
        stream = output if request.output is None else stack.enter_context(open_atomic(Path(request.output)))
        write = writer(stream, request.format, found.predictor.format.answers)
        for part in found.parts(lines, request.input):
            write(part)
            stream.flush()
        # The header of a table without rows.
        write([])


def predict_rows(run: RunDir, rows: Iterable[Any], batch_size: int | None = None) -> Iterator[Any]:
    """Yield the prediction for each row, in their order. Memory: that of a few batches.

    rows   the values of rows, as from a file of JSON lines or a table
    Raises as `answer` does; messages count the rows from 1.
    """
    folder_trust.check_run(run)
    experiment = load_to_run(run.config)
    # This is the caller's process: its working folder and its arithmetic come back after each batch.
    with contextlib.chdir(os.getcwd()), guest_arithmetic(experiment):
        found = _answering(run, experiment, batch_size)

    def predict(samples: Sequence[object]) -> list[object]:
        with guest_arithmetic(experiment):
            return found.predict(samples)

    numbered = itertools.starmap(Row, enumerate(rows, start=1))
    for part in replace(found, predict=predict).predictions(numbered, "samples"):
        yield from part


def _on_device(
    predictor: Predictor, model: nn.Module, experiment: Experiment, settings: Evaluation
) -> Predict:
    """Return a function that predicts on the run's kind of device, in `train.precision`."""
    wanted = experiment.train.device
    device = choose_device("auto" if wanted == "cuda" else wanted)
    model = model.to(device)
    precision = autocast_dtype(experiment.train.precision, device)

    def predict(samples: Sequence[object]) -> list[object]:
        with torch.no_grad(), torch.autocast(device.type, precision, enabled=precision is not None):
            return predictor.predict(model, samples, settings, device)

    return predict
