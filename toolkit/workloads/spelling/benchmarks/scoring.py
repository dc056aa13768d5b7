"""Score all predictions for all benchmarks; an error in one file does not affect the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from toolkit.errors import UserError
from toolkit.workloads.spelling.benchmarks.layout import Benchmark
from toolkit.workloads.spelling.benchmarks.lines import read_lines
from toolkit.workloads.spelling.benchmarks.parsing import Figures, Sheet, open_sheet

#: A baseline: returns the prediction for a text as a line.
Predictor: TypeAlias = Callable[[str], str]
#: Baselines by kind of benchmark and name.
Predictors: TypeAlias = Mapping[str, Mapping[str, Predictor]]
#: Predictions to score: the benchmark, the model's name, a file or a baseline.
Entry: TypeAlias = "tuple[Benchmark, str, Path | Predictor]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The metrics of a model's predictions for a benchmark, by name."""

    benchmark: Benchmark
    model: str
    figures: Figures

    def to_json(self) -> dict[str, Any]:
        of = self.benchmark
        return {
            "kind": of.kind,
            "group": of.group,
            "split": of.split,
            "model": self.model,
            "metrics": self.figures,
        }


def entries(
    benchmarks: Sequence[Benchmark], predictors: Predictors, files: Mapping[Benchmark, Mapping[str, Path]]
) -> list[Entry]:
    """Return all predictions: of the baselines, of files in the benchmarks' folders, and of other files."""
    found: list[Entry] = []
    for benchmark in benchmarks:
        made: dict[str, Path | Predictor] = {
            **predictors.get(benchmark.kind, {}),
            **benchmark.predictions,
            **files.get(benchmark, {}),
        }
        found += ((benchmark, model, by) for model, by in made.items())
    return found


def score_entries(
    wanted: Sequence[Entry],
    *,
    dictionary: Collection[str] | None = None,
    lowercase: bool = False,
    advance: Callable[[float], object] = lambda share: None,
) -> Iterator[Result | UserError]:
    """Yield the result of each entry, or its error. The error of a benchmark itself is yielded only once.

    dictionary  see `open_sheet`
    lowercase   ignore case in all benchmarks, not only in the lines that their own files mark
    advance     called with the share of an entry that was scored since the last call
    """
    sheets: dict[Benchmark, Sheet | None] = {}
    for of, model, made_by in wanted:
        try:
            if of not in sheets:
                # Only one sheet is kept in memory.
                sheets = {of: None}
                is_lower = lowercase or of.lowercase
                sheets[of] = open_sheet(
                    of.kind, of.corrupt, of.correct, lowercase=is_lower, dictionary=dictionary
                )
            if (sheet := sheets[of]) is not None:
                yield Result(benchmark=of, model=model, figures=_figures(model, made_by, sheet, advance))
        except UserError as error:
            yield error


def _figures(
    model: str, made_by: Path | Predictor, sheet: Sheet, advance: Callable[[float], object]
) -> Figures:
    texts = sheet.inputs
    if isinstance(made_by, Path):
        predictions, source = read_lines(made_by), str(made_by)
    else:
        predictions, source = [made_by(text) for text in texts], model
    return sheet.score(predictions, source, lambda lines: advance(lines / len(texts)))
