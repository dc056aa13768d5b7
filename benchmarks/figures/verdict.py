"""Whether the measurements reach a goal: a condition on rows of a table, and its text."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.figures.tables import Row, Table

NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A condition on one candidate of one table, for each piece of work with values.

    table      title of the table
    candidate  the candidate to judge
    says       what the page says, with {} for the figures
    take       value, or ratio or difference to another candidate, of the same round
    against    the other candidates, the best of which counts; empty: the table's baseline
    works      the pieces of work that count; empty: all
    at_most, at_least   limit of the median; only one of the two is set
    """

    table: str
    candidate: str
    says: str
    take: str = "value"
    against: tuple[str, ...] = ()
    works: tuple[str, ...] = ()
    at_most: float | None = None
    at_least: float | None = None
    digits: int = 2

    def reached(self, median: float) -> bool:
        low = float("-inf") if self.at_least is None else self.at_least
        high = float("inf") if self.at_most is None else self.at_most
        return low <= median <= high


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A row of the page's first table; without checks, no command measures it."""

    figure: str
    goal: str
    checks: tuple[Check, ...] = ()
    elsewhere: str = ""


def cells(goal: Goal, tables: Mapping[str, Table]) -> tuple[str, str]:
    """Return the measured figures of a goal, and whether it was reached; tables by title."""
    if not goal.checks:
        return goal.elsewhere or NOT_MEASURED, ""
    said, passed, missing = [], [], False
    for check in goal.checks:
        medians = [*medians_of(check, tables.get(check.table))]
        if medians:
            said.append(check.says.format(_range(medians, check)))
            passed += [check.reached(median) for median in medians]
        missing = missing or not medians
    if not passed:
        return NOT_MEASURED, ""
    verdict = "yes" if all(passed) else f"in {sum(passed)} of {len(passed)}" if any(passed) else "no"
    return "; ".join(said), f"{verdict}, part {NOT_MEASURED}" if missing else verdict


def medians_of(check: Check, table: Table | None) -> Iterator[float]:
    """Yield the figures that a check judges: one for each piece of work that has them."""
    if table is None:
        return
    rows = {(row.work, row.candidate): row for row in table.rows if row.values}
    for (work, candidate), row in rows.items():
        if candidate != check.candidate or (check.works and work not in check.works):
            continue
        if check.take == "value":
            yield statistics.median(row.values)
            continue
        names = check.against or (table.baseline,)
        others = [rows[work, name] for name in names if (work, name) in rows]
        if len(others) == len(names):
            yield _compared(check, row, others, table.better)


def _compared(check: Check, row: Row, others: Sequence[Row], better: str) -> float:
    """Compare in each round and return the median; if the rounds differ in number, compare the medians."""
    best: Callable[[Sequence[float]], float] = min if better == "less" else max
    columns = [row.values, *(other.values for other in others)]
    if len({*map(len, columns)}) > 1:
        columns = [(statistics.median(values),) for values in columns]
    pairs: list[tuple[float, float]] = [(own, best(rest)) for own, *rest in zip(*columns, strict=True)]
    if check.take == "ratio":
        return statistics.median(own / other for own, other in pairs)
    return statistics.median(own - other for own, other in pairs)


def _range(medians: Sequence[float], check: Check) -> str:
    sign = "+" if check.take == "difference" else ""
    low, high = (f"{value:{sign},.{check.digits}f}" for value in (min(medians), max(medians)))
    return low if low == high else f"{low} to {high}"
