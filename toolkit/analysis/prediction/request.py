"""The request of `stk predict`, and the runs that can answer it. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toolkit.analysis.prediction.formats import JSON_LINES, LINES, OUTPUTS, TABLES
from toolkit.checkpoint.finished import finished_result
from toolkit.config import load_resolved
from toolkit.config.schema import Experiment
from toolkit.data.sources.compressed import unpacked_name
from toolkit.errors import UserError
from toolkit.registry import task_kinds
from toolkit.run.run_dir import RunDir

#: The module that answers a request, with a run's own code.
MODULE = "toolkit.analysis.prediction"

#: Endings of formats in which predictions cannot be written.
_NOT_WRITTEN = {
    ".tsv", ".json", ".parquet", ".feather", ".arrow", ".xlsx", ".xls", ".ods", ".gz", ".bz2", ".xz", ".zip",
}  # fmt: skip
_ENDINGS = {".csv": "csv", ".tsv": "tsv", ".jsonl": JSON_LINES, ".ndjson": JSON_LINES, ".txt": LINES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The rows, and the format of their predictions.

    file        None: standard input
    input       one of INPUTS
    output      file, which appears only when complete; None: standard output
    format      one of OUTPUTS
    batch_size  samples in a batch; None: as in the run's evaluations
    """

    file: str | None
    input: str
    output: str | None
    format: str
    batch_size: int | None = None


def input_format(file: str | None, delimiter: str | None = None) -> str:
    """The format of a file, by the ending of its name; that of a pipe is JSON lines. Raises UserError.

    delimiter   that the run names for its own tables, which may have any ending
    """
    if file is None:
        return JSON_LINES
    ending = unpacked_name(Path(file)).suffix.lower()
    if ending not in _ENDINGS:
        raise UserError(
            f"{file}: the ending {ending!r} does not name a known format, expected one of "
            f"{', '.join(_ENDINGS)}: convert the file, or say with --input-format which of them it is"
        )
    if _ENDINGS[ending] == LINES and delimiter is not None:
        raise UserError(
            f"{file}: lines of text, or a table whose columns are divided by {delimiter!r}, as the run read "
            "its data? Say it: --input-format lines or --input-format csv"
        )
    return _ENDINGS[ending]


def output_format(output: str | None, read_as: str, *, given: str | None = None, varied: bool = False) -> str:
    """Return the format of predictions: `given`, else that of the file's name, else that of the rows.

    given    the format that the user has named; it goes before all others
    varied   whether they differ in their number of values, so that a table may not hold them
    Raises UserError for an ending of another format.
    """
    if given:
        return given
    ending = Path(output).suffix.lower() if output else ""
    if ending in _NOT_WRITTEN:
        raise UserError(
            f"{output}: predictions are not written as {ending}, expected .csv, .jsonl or .ndjson: "
            "change the name, or give the format with --format"
        )
    if _ENDINGS.get(ending) in OUTPUTS:
        return _ENDINGS[ending]
    return "csv" if read_as in TABLES and not varied else JSON_LINES


def check_predicts(run: RunDir) -> Experiment:
    """Return a run's experiment. Raises UserError if its task has no predictor, or it has not finished."""
    experiment = load_resolved(run.config)
    spec = task_kinds()[experiment.task.kind]
    if fault := spec.prediction_fault(experiment, run.path):
        raise UserError(f"{run.run_id} predicts nothing: {fault}")
    if not spec.predictor:
        raise UserError(
            f"{run.run_id} predicts nothing: its task.kind {spec.kind} has no predictor. The workload that "
            "registers it writes a class with the members of toolkit.analysis.prediction.predictor.Predictor "
            'and names it: TaskSpec(…, predictor="module:Class")'
        )
    finished_result(run)
    return experiment
