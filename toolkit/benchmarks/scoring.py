"""Score all predictions for all benchmarks; what is wrong with one leaves the others alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from toolkit.benchmarks.layout import Benchmark
from toolkit.benchmarks.lines import read_lines
from toolkit.benchmarks.sheets import Figures, Sheet, open_sheet
from toolkit.errors import UserError

#: Makes lines of predictions for texts, one for each: a baseline; a run.
Predictor: TypeAlias = Callable[[Sequence[str]], Sequence[str]]
#: By kind of benchmark and the name of their row.
Predictors: TypeAlias = Mapping[str, Mapping[str, Predictor]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The metrics by name of a model's predictions for a benchmark."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Predictions to be scored: a file of them, or what makes them."""

    benchmark: Benchmark
    model: str
    made_by: Path | Predictor

    def score(self, sheet: Sheet, tell: Callable[[float], object]) -> Result:
        """Score on the benchmark's sheet; tell is told of shares done. Raises UserError."""
        texts = sheet.inputs

        def share(lines: int) -> None:
            tell(lines / len(texts))

        if isinstance(self.made_by, Path):
            figures = sheet.score(read_lines(self.made_by), str(self.made_by), share)
        else:
            figures = sheet.score(self.made_by(texts), self.model, share)
        return Result(benchmark=self.benchmark, model=self.model, figures=figures)


def entries(
    benchmarks: Sequence[Benchmark],
    predictors: Predictors,
    files: Mapping[Benchmark, Mapping[str, Path]] = MappingProxyType({}),
) -> list[Entry]:
    """Return what there is to score: what predictors make, files of predictions beside benchmarks, others."""
    found: list[Entry] = []
    for benchmark in benchmarks:
        made: dict[str, Path | Predictor] = {
            **predictors.get(benchmark.kind, {}),
            **benchmark.predictions,
            **files.get(benchmark, {}),
        }
        found += (Entry(benchmark=benchmark, model=model, made_by=by) for model, by in made.items())
    return found


def score_entries(
    wanted: Sequence[Entry],
    *,
    dictionary: Collection[str] | None = None,
    tell: Callable[[float], object] = lambda share: None,
) -> Iterator[Result | UserError]:
    """Yield the result of each entry, or what is wrong with it; of a bad benchmark once for all.

    dictionary  see `open_sheet`
    tell        is told of shares of an entry done
    """
    sheets: dict[Benchmark, Sheet | None] = {}
    for entry in wanted:
        benchmark = entry.benchmark
        try:
            if benchmark not in sheets:
                # One at a time is kept.
                sheets = {benchmark: None}
                sheets[benchmark] = open_benchmark(benchmark, dictionary)
            sheet = sheets[benchmark]
            if sheet is not None:
                yield entry.score(sheet, tell)
        except UserError as error:
            yield error


def open_benchmark(benchmark: Benchmark, dictionary: Collection[str] | None = None) -> Sheet:
    """Read what is right for a benchmark. Raises DataError."""
    return open_sheet(
        benchmark.kind,
        benchmark.corrupt,
        benchmark.correct,
        lowercase=benchmark.lowercase,
        dictionary=dictionary,
    )
