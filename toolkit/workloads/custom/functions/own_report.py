"""The result of the user's function `report`: written by the run, read by its report. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from toolkit.errors import DataError
from toolkit.files import read_json, write_json
from toolkit.report.blocks import Block, Figure, Section, Table, Text
from toolkit.report.formats import clean
from toolkit.report.plotting.curves import Columns
from toolkit.report.task_report import Scores, TaskReport
from toolkit.run.run_dir import RunDir

#: In the artifacts of a run.
_SECTIONS = "report_sections.json"
_EXPECTED = "expected a text, a list of dictionaries (the rows of a table), or a figure of matplotlib"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionReport(TaskReport):
    """The value that a run's function `report` returned."""

    run: RunDir
    stored: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, run: RunDir, scores: Scores, curves: Mapping[str, Columns]) -> Self:
        stored = read_json(run.artifact(_SECTIONS)) or []
        if not (isinstance(stored, list) and all(isinstance(each, dict) for each in stored)):
            raise DataError(f"{run.artifact(_SECTIONS)} is damaged: expected a list of sections")
        return cls(run=run, stored=stored)

    def sections(self) -> Iterator[Section]:
        for each in self.stored:
            title = str(clean(each["title"]))
            yield Section(title=title, blocks=(self._block(title, each),))

    def to_json(self) -> Mapping[str, Any]:
        return {"own": self.stored} if self.stored else {}

    def _block(self, title: str, stored: Mapping[str, Any]) -> Block:
        if "text" in stored:
            return Text(text=str(clean(stored["text"])))
        if "figure" in stored:
            name = str(stored["figure"])
            file = self.run.artifact(f"{name}.png")
            return Figure(name=name, about=title, draw=lambda theme: file.read_bytes())
        head = tuple(str(clean(each)) for each in stored["head"])
        rows = tuple(tuple(str(clean(cell)) for cell in row) for row in stored["rows"])
        return Table(title=title, head=head, rows=rows)


def write_sections(run: RunDir, returned: Any) -> None:
    """Write the sections that `report` returned, by title. Raises TypeError for anything else."""
    if returned is None:
        return
    if not isinstance(returned, Mapping):
        raise TypeError(f"report returned {type(returned).__name__}, expected a dictionary by titles")
    sections = [
        {"title": str(title), **_section(run, f"own_{number}", str(title), value)}
        for number, (title, value) in enumerate(returned.items(), start=1)
    ]
    write_json(run.artifact(_SECTIONS), sections)


def _section(run: RunDir, name: str, title: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"text": value}
    if hasattr(value, "savefig"):
        value.savefig(run.artifact(f"{name}.png"), dpi=150)
        return {"figure": name}
    if isinstance(value, Sequence) and all(isinstance(row, Mapping) for row in value):
        head = list(dict.fromkeys(str(name) for row in value for name in row))
        rows = [{str(name): cell for name, cell in row.items()} for row in value]
        return {"head": head, "rows": [[_cell(row.get(name, "")) for name in head] for row in rows]}
    raise TypeError(f"report returned {type(value).__name__} for {title!r}, {_EXPECTED}")


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
