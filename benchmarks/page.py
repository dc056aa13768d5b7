"""The part of docs/benchmarks.md that is made of measurements: the goals, the machines, the tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.goals import GOALS
from benchmarks.machine import busy, sentence
from benchmarks.tables import Table
from benchmarks.verdict import cells, medians_of
from toolkit.errors import UserError

BEGIN = "<!-- Between here and the next mark docs/make_benchmarks writes, from docs/benchmarks/*.json. -->\n"
END = "<!-- Here it ends. -->\n"

#: Tables that are shown as bars too, by the name of the picture.
PICTURES = {
    "benchmarks_loop.png": "Cost of the loop, per step",
    "benchmarks_tokens.png": "Real tokens a second on texts of mixed length",
    "benchmarks_goodput.png": "Goodput under kills",
    "benchmarks_scaling.png": "Scaling over hosts, samples a second over those of one host",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one command has written with --json."""

    name: str
    machine: Mapping[str, Any]
    date: str
    rounds: int
    tables: tuple[Table, ...]


def read(folder: Path) -> list[Measurement]:
    """The measurements of a folder, by name. Raises UserError for toy sizes and a table that two tell of."""
    found = [_read(path) for path in sorted(folder.glob("*.json"))]
    titles = [table.title for each in found for table in each.tables]
    if twice := sorted({title for title in titles if titles.count(title) > 1}):
        raise UserError(f"{folder}: two files have the table “{twice[0]}”; keep the one that counts")
    return found


def _read(path: Path) -> Measurement:
    document = json.loads(path.read_text(encoding="utf-8"))
    if document["quick"]:
        raise UserError(f"{path}: this is of --quick, whose figures mean nothing")
    return Measurement(
        name=path.stem,
        machine=document["machine"],
        date=document["date"],
        rounds=document["rounds"],
        tables=tuple(map(Table.of_json, document["tables"])),
    )


def tables_of(measurements: Sequence[Measurement]) -> dict[str, Table]:
    """All tables by title."""
    return {table.title: table for each in measurements for table in each.tables}


def replaced(page: str, measurements: Sequence[Measurement]) -> str:
    """The page with its part between the marks made anew. Raises UserError where it has no marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(f"the page has no place for the figures: put these lines into it\n{BEGIN}{END}")
    return "".join([before, begin, "\n".join(["", *_part(measurements), "", ""]), end, after])


def unmeasured(measurements: Sequence[Measurement]) -> list[str]:
    """What goals speak of and no table has: a table, or a candidate in it."""
    tables = tables_of(measurements)
    checks = [check for goal in GOALS for check in goal.checks]
    names = [
        f"{check.table}: {check.candidate}"
        for check in checks
        if not [*medians_of(check, tables.get(check.table))]
    ]
    return list(dict.fromkeys(names))


def _part(measurements: Sequence[Measurement]) -> Iterator[str]:
    yield from _summary(tables_of(measurements))
    yield from _machines(measurements)
    pictures = {title: name for name, title in PICTURES.items()}
    for each in measurements:
        for table in each.tables:
            yield ""
            yield from table.markdown()
            if table.title in pictures:
                yield ""
                yield f"![{table.title}](pictures/{pictures[table.title]})"


def _summary(tables: Mapping[str, Table]) -> Iterator[str]:
    yield "## Goals"
    yield ""
    yield "| figure | beside | goal | measured | reached? |"
    yield "| --- | --- | --- | --- | --- |"
    for goal in GOALS:
        measured, reached = cells(goal, tables)
        yield f"| {goal.figure} | {goal.beside} | {goal.goal} | {measured} | {reached} |"
    yield ""
    yield "Medians, from the least to the largest of the pieces of work; the last column counts these."


def _machines(measurements: Sequence[Measurement]) -> Iterator[str]:
    if not measurements:
        return
    yield ""
    yield "## Figures"
    machines: dict[str, list[Measurement]] = {}
    for each in measurements:
        machines.setdefault(sentence(each.machine).rpartition("; ")[0], []).append(each)
    for machine, those in machines.items():
        yield ""
        yield f"{machine}."
        yield ""
        yield "| measurement | date | rounds | load before | after |"
        yield "| --- | --- | --: | --: | --: |"
        for each in those:
            load, after = each.machine["load"], each.machine["load_after"]
            warning = " (busy)" if busy(load, each.machine["cores"]) else ""
            yield f"| {each.name} | {each.date} | {each.rounds} | {load}{warning} | {after} |"
