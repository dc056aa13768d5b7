"""Tables of results: models in rows, benchmarks in columns, one for each metric of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolkit.benchmarks.kinds import KINDS, TITLES, Metric
from toolkit.benchmarks.scoring import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A value as it is shown; empty where a model has no predictions for a benchmark."""

    text: str = ""
    is_best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A metric for all models and all benchmarks of a kind; rows: a model with its cells."""

    kind: str
    metric: Metric
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]

    @property
    def title(self) -> str:
        return f"{TITLES[self.kind]} ({self.kind}): {self.metric.title}{self.metric.unit}"


def tables(results: Sequence[Result]) -> Iterator[Table]:
    """Yield the tables of what was scored, kind by kind; metrics that no result has are left out."""
    for kind, metrics in KINDS.items():
        of_kind = [result for result in results if result.benchmark.kind == kind]
        for metric in metrics:
            with_it = [result for result in of_kind if metric.name in result.figures]
            if with_it:
                yield _table(kind, metric, with_it)


def _table(kind: str, metric: Metric, results: Sequence[Result]) -> Table:
    columns = tuple(dict.fromkeys(result.benchmark.title for result in results))
    models = dict.fromkeys(result.model for result in results)
    values = {(result.model, result.benchmark.title): result.figures[metric.name] for result in results}
    of_columns = {column: [value for (_, of), value in values.items() if of == column] for column in columns}
    # A single value is the best of nothing.
    best = {column: metric.best(these) for column, these in of_columns.items() if len(these) > 1}
    cells = {
        (model, column): Cell(text=metric.shown(value), is_best=metric.shown(value) == best.get(column))
        for (model, column), value in values.items()
    }
    return Table(
        kind=kind,
        metric=metric,
        columns=columns,
        rows=tuple(
            (model, tuple(cells.get((model, column), Cell()) for column in columns)) for model in models
        ),
    )
