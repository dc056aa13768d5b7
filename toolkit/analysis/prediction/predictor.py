"""The predictor of a workload: the class that `TaskSpec.predictor` names. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from toolkit.config.schema import Evaluation, Experiment
from toolkit.run.run_dir import RunDir

if TYPE_CHECKING:
    import torch
    from torch import nn


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat:
    """The format of the rows of a file, as far as its name does not show it.

    delimiter      between the fields of a table, one character; None: comma, or tab for .tsv
    quoted         whether fields may be quoted; None: yes, but not between tabs
    columns        names of the columns of a table without a header; None: its first line names them
    needed         columns of a table that `sample` reads; None: perhaps all. Others may have equal names
    encoding       of the file
    takes_lines    whether rows may be plain lines of text
    takes_tables   whether rows may be rows of a table
    keeps_numbers  whether numbers in JSON are kept as text, also NaN and Infinity
    answers        columns of the predictions in a table, such as label and probabilities.spam, if they are
                   known beforehand: a table without rows has them, too
    """

    delimiter: str | None = None
    quoted: bool | None = None
    columns: tuple[str, ...] | None = None
    needed: tuple[str, ...] | None = None
    encoding: str = "utf-8"
    takes_lines: bool = False
    takes_tables: bool = True
    keeps_numbers: bool = False
    answers: tuple[str, ...] = ()


class UnfitRow(Exception):
    """A row that is not a sample: what was found in it, and what is expected."""


class Predictor(Protocol):
    """Predicts with a run, using only the run's folder.

    format           how its rows are read
    batches_at_once  number of batches of samples that `predict` gets at once, to group similar lengths
    """

    format: RowFormat
    batches_at_once: int

    def __init__(self, run: RunDir, experiment: Experiment) -> None:
        """Read the files that the model needs besides its weights. Raises UserError if they are gone."""

    def model(self) -> nn.Module:
        """A new model, into which the weights are loaded."""

    def sample(self, row: Any) -> Any:
        """The sample of a row. Raises UnfitRow.

        row   of a table: its texts by column; of JSON lines: the value of the line; else the line itself
        """

    def predict(
        self, model: nn.Module, samples: Sequence[Any], settings: Evaluation, device: torch.device
    ) -> list[Any]:
        """Return a prediction for each sample, in their order: values that JSON can hold.

        model     in evaluation mode, on the device; no gradient is kept
        settings  give the size of a batch
        Raises UserError.
        """
