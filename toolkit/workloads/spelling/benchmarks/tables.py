"""Tables of results: models in rows, benchmarks in columns, one for each metric of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolkit.report import blocks
from toolkit.report.blocks import Table
from toolkit.report.formats import NOTHING, clean, one_line
from toolkit.workload import Metric
from toolkit.workloads.spelling.benchmarks.kinds import HEADLINES, KINDS, TITLES, shown
from toolkit.workloads.spelling.benchmarks.scoring import Result


def tables(results: Sequence[Result], *, headlines: bool = False) -> Iterator[tuple[Metric, Table]]:
    """Yield each metric with its table, kind by kind, without metrics that no result has.

    headlines  whether only the headline metrics are wanted
    """
    for kind, metrics in KINDS.items():
        for metric in metrics:
            found = [each for each in results if each.benchmark.kind == kind and metric.name in each.figures]
            if found and (metric.name in HEADLINES[kind] or not headlines):
                yield metric, _table(kind, metric, found)


def _table(kind: str, metric: Metric, results: Sequence[Result]) -> Table:
    columns = list(dict.fromkeys(result.benchmark.title for result in results))
    models = list(dict.fromkeys(result.model for result in results))
    values = {(result.model, result.benchmark.title): result.figures[metric.name] for result in results}
    cells = {place: shown(metric, value) for place, value in values.items()}
    best = {column: _best(metric, [value for (_, of), value in values.items() if of == column])
            for column in columns}  # fmt: skip
    unit = ", %" if metric.unit == "share" else ", lower is better" if metric.goal == "min" else ""
    return blocks.table(
        f"{TITLES[kind]} ({kind}): {metric.title}{unit}",
        ["model", *map(_name, columns)],
        [[_name(model), *(cells.get((model, column), NOTHING) for column in columns)] for model in models],
        best=frozenset(
            (models.index(model), columns.index(column) + 1)
            for (model, column), cell in cells.items()
            if cell == best[column]
        ),
    )


def _best(metric: Metric, values: Sequence[float]) -> str | None:
    """The best of several values as it is shown: what looks equal is equally good."""
    if len(values) < 2:
        return None
    return shown(metric, min(values) if metric.goal == "min" else max(values))


def _name(text: str) -> str:
    return one_line(str(clean(text)), 60)
