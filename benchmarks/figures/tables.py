"""Measurements as tables: ratios first, medians with quartiles."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: The figures of one candidate in each round, or the reason for having none.
Found = Mapping[tuple[str, str], "list[dict[str, float]] | str"]

_AXES = ("work", "candidate")
_HEAD = ("title", "goal", "unit", "better", "baseline", "digits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Median and quartiles of some values; all three are equal for a single value."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Raises statistics.StatisticsError if there are no values."""
        if len(values) < 2:
            only = statistics.median(values)
            return cls(low=only, median=only, high=only)
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(low=low, median=median, high=high)

    def text(self, digits: int) -> str:
        return f"{self.median:,.{digits}f} ({self.low:,.{digits}f} to {self.high:,.{digits}f})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One candidate at one piece of work.

    values      one for each round
    ratio       of the value to the baseline's value, round by round
    difference  of the two values, in the table's unit
    missing     why there are no values
    """

    work: str
    candidate: str
    values: tuple[float, ...] = ()
    ratio: Spread | None = None
    difference: Spread | None = None
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One figure of several candidates.

    better  less or more
    """

    title: str
    goal: str
    unit: str
    better: str
    baseline: str
    digits: int = 2
    notes: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)

    @property
    def has_goal(self) -> bool:
        """Whether the table has a goal; a table without a goal explains another table."""
        return not self.goal.startswith("none")

    def filled(self, found: Found, figure: str) -> Table:
        """Add the rows of one figure, in the order of `found`; return the table itself."""
        for (work, candidate), rounds in found.items():
            if isinstance(rounds, str):
                self.rows.append(Row(work=work, candidate=candidate, missing=rounds))
            elif values := _values(rounds, figure):
                base = found.get((work, self.baseline))
                self.rows.append(_row(work, candidate, values, base, figure))
        return self

    def markdown(self) -> Iterator[str]:
        """Yield the lines of the table in Markdown."""
        yield f"### {self.title}"
        yield ""
        yield f"Goal: {self.goal}. Ratios are to *{self.baseline}*; {self.better} is better."
        yield from self.notes
        yield ""
        yield f"| work | candidate | ratio | difference, {self.unit} | {self.unit}, median (quartiles) |"
        yield "| --- | --- | --: | --: | --: |"
        for row in self.rows:
            yield f"| {row.work} | {row.candidate} | {' | '.join(self._cells(row))} |"

    def brief(self) -> Iterator[str]:
        """Yield the table in Markdown without spreads: a row for each candidate, a column for each work."""
        works, candidates = (dict.fromkeys(getattr(row, key) for row in self.rows) for key in _AXES)
        cells = {(row.work, row.candidate): self._brief_cell(row) for row in self.rows}
        yield f"### {self.title}"
        yield ""
        yield f"In {self.unit}, {self.better} is better; in parentheses the ratio to *{self.baseline}*."
        yield f"Goal: {self.goal}."
        yield from self.notes
        yield ""
        yield f"| | {' | '.join(works)} |"
        yield f"| --- |{' --: |' * len(works)}"
        for candidate in candidates:
            yield f"| {candidate} | {' | '.join(cells.get((work, candidate), '') for work in works)} |"

    def _brief_cell(self, row: Row) -> str:
        if row.missing:
            return row.missing
        median = f"{statistics.median(row.values):,.{self.digits}f}"
        if row.ratio is None or row.candidate == self.baseline:
            return median
        return f"{median} ({row.ratio.median:.2f})"

    def _cells(self, row: Row) -> tuple[str, str, str]:
        if row.missing:
            return "", "", row.missing
        value = Spread.of(row.values).text(self.digits)
        if row.ratio is None or row.difference is None:
            return "", "", value
        return row.ratio.text(3), f"{row.difference.median:+,.{self.digits}f}", value

    def as_json(self) -> dict[str, Any]:
        """Return the table as a JSON object."""
        head = {name: getattr(self, name) for name in _HEAD}
        return {**head, "notes": list(self.notes), "rows": [_row_as_json(row) for row in self.rows]}

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> Table:
        """Return the table of an object from `as_json`. Raises KeyError for a missing key."""
        head = {name: document[name] for name in _HEAD}
        return cls(**head, notes=tuple(document["notes"]), rows=[*map(_row_of_json, document["rows"])])


def _values(rounds: Sequence[Mapping[str, float]], figure: str) -> tuple[float, ...]:
    return tuple(each[figure] for each in rounds if figure in each and math.isfinite(each[figure]))


def _row(
    work: str,
    candidate: str,
    values: tuple[float, ...],
    base: list[dict[str, float]] | str | None,
    figure: str,
) -> Row:
    others = () if base is None or isinstance(base, str) else _values(base, figure)
    if len(others) != len(values) or not all(others):
        return Row(work=work, candidate=candidate, values=values)
    pairs = list(zip(values, others, strict=True))
    return Row(
        work=work,
        candidate=candidate,
        values=values,
        ratio=Spread.of([value / other for value, other in pairs]),
        difference=Spread.of([value - other for value, other in pairs]),
    )


def _row_as_json(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {"work": row.work, "candidate": row.candidate}
    if row.missing:
        return {**found, "missing": row.missing}
    found["values"] = list(row.values)
    for name, spread in (("ratio", row.ratio), ("difference", row.difference)):
        if spread is not None:
            found[name] = {"low": spread.low, "median": spread.median, "high": spread.high}
    return found


def _row_of_json(found: Mapping[str, Any]) -> Row:
    return Row(
        work=found["work"],
        candidate=found["candidate"],
        values=tuple(found.get("values", ())),
        ratio=Spread(**found["ratio"]) if "ratio" in found else None,
        difference=Spread(**found["difference"]) if "difference" in found else None,
        missing=found.get("missing", ""),
    )
