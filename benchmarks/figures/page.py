"""The generated parts of docs/benchmarks/*.md: goals, machines and tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures.goals import GOALS
from benchmarks.figures.tables import Table
from benchmarks.figures.verdict import cells, medians_of
from benchmarks.measuring.machine import sentence
from toolkit.errors import UserError

#: A generated part of a page: goals and machines, or the tables of the named measurements.
_PART = re.compile(
    r"(<!-- docs/scripts/make_benchmarks writes from here: ([^\n]*) -->\n).*?(<!-- To here. -->\n)", re.DOTALL
)
_GOALS = "goals"

#: Tables that are shown as bars too, by the name of the picture.
PICTURES = {
    "benchmarks/loop.png": "Cost of the loop, per step",
    "benchmarks/tokens.png": "Real tokens a second on texts of mixed length",
    "benchmarks/goodput.png": "Goodput under kills",
    "benchmarks/scaling.png": "Scaling over hosts, samples a second over those of one host",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The output of one command with --json."""

    name: str
    machine: Mapping[str, Any]
    date: str
    tables: tuple[Table, ...]


def read(folder: Path) -> list[Measurement]:
    """Read the measurements of a folder. Raises UserError for toy sizes and for a table in two files."""
    found = [_read(path) for path in sorted(folder.glob("*.json"))]
    titles = [table.title for each in found for table in each.tables]
    if twice := sorted({title for title in titles if titles.count(title) > 1}):
        raise UserError(f"{folder}: two files have the table “{twice[0]}”; keep the one that counts")
    return found


def _read(path: Path) -> Measurement:
    document = json.loads(path.read_text(encoding="utf-8"))
    if document["quick"]:
        raise UserError(f"{path}: measured with --quick, so its figures mean nothing")
    return Measurement(
        name=path.stem,
        machine=document["machine"],
        date=document["date"],
        tables=tuple(map(Table.of_json, document["tables"])),
    )


def tables_of(measurements: Sequence[Measurement]) -> dict[str, Table]:
    """Return all tables by title."""
    return {table.title: table for each in measurements for table in each.tables}


def part_of(*names: str) -> str:
    """Return an empty generated part, for the named measurements or for "goals"."""
    return f"<!-- docs/scripts/make_benchmarks writes from here: {' '.join(names)} -->\n<!-- To here. -->\n"


def shown_by(page: str) -> list[str]:
    """Return the names of the measurements that a page shows, and "goals"."""
    return [name for _, names, _ in _PART.findall(page) for name in names.split()]


def replaced(page: str, measurements: Sequence[Measurement], pictures: str = "pictures") -> str:
    """Return the page with its parts generated again. Raises UserError if it has none.

    pictures  their folder, relative to the page
    """
    if not shown_by(page):
        raise UserError(f"the page has no place for figures: put these lines into it\n{part_of(_GOALS)}")

    def part(found: re.Match[str]) -> str:
        begin, names, end = found.groups()
        lines = [line for name in names.split() for line in _lines(name, measurements, pictures)]
        return "\n".join([begin, "\n".join(lines).strip(), "", end])

    return _PART.sub(part, page)


def unmeasured(measurements: Sequence[Measurement]) -> list[str]:
    """Return the tables and candidates that goals name and no measurement has."""
    tables = tables_of(measurements)
    checks = [check for goal in GOALS for check in goal.checks]
    names = [
        f"{check.table}: {check.candidate}"
        for check in checks
        if not [*medians_of(check, tables.get(check.table))]
    ]
    return list(dict.fromkeys(names))


def _lines(name: str, measurements: Sequence[Measurement], pictures: str) -> Iterator[str]:
    if name == _GOALS:
        yield from _goals(tables_of(measurements))
        yield from _machines(measurements)
        return
    files = {title: file for file, title in PICTURES.items()}
    tables = (table for each in measurements if each.name == name for table in each.tables)
    for table in (table for table in tables if table.has_goal):
        yield from table.brief()
        yield ""
        if table.title in files:
            yield f"![{table.title}]({pictures}/{files[table.title]})"
            yield ""


def _goals(tables: Mapping[str, Table]) -> Iterator[str]:
    yield "| figure | goal | measured | reached? |"
    yield "| --- | --- | --- | --- |"
    for goal in GOALS:
        measured, reached = cells(goal, tables)
        yield f"| {goal.figure} | {goal.goal} | {measured} | {reached} |"
    yield ""
    yield "Medians over the rounds, from the least to the largest of the models and data sets."


def _machines(measurements: Sequence[Measurement]) -> Iterator[str]:
    machines: dict[str, list[Measurement]] = {}
    for each in measurements:
        machines.setdefault(sentence(each.machine).rpartition("; ")[0], []).append(each)
    for machine, those in machines.items():
        yield ""
        yield f"{machine}: {', '.join(map(_taken, those))}."


def _taken(measurement: Measurement) -> str:
    """Return the name of a measurement with its date, rounds and load."""
    load = measurement.machine["load"]
    # A benchmark may take fewer rounds than it was asked for.
    most = max((len(row.values) for table in measurement.tables for row in table.rows), default=0)
    return f"`{measurement.name}` ({measurement.date}, {most} round{'s'[: most != 1]}, load {load})"
