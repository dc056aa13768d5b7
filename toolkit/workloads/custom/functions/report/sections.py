"""The sections that the function `report` of the user's has added to the report of a run. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from toolkit.errors import DataError
from toolkit.files import read_json
from toolkit.report.blocks import Block, Figure, Section, Table, Text
from toolkit.report.formats import clean
from toolkit.report.plotting.curves import Columns
from toolkit.report.plotting.themes import Theme
from toolkit.report.task_report import Scores, TaskReport
from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.functions.report.writing import SECTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionReport(TaskReport):
    """What a run's function `report` returned."""

    run: RunDir
    stored: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, run: RunDir, scores: Scores, curves: Mapping[str, Columns]) -> Self:
        stored = read_json(run.artifact(SECTIONS)) or []
        if not (isinstance(stored, list) and all(isinstance(each, dict) for each in stored)):
            raise DataError(f"{run.artifact(SECTIONS)} is damaged: expected a list of sections")
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
            return self._figure(title, str(stored["figure"]))
        head = tuple(str(clean(each)) for each in stored["head"])
        rows = tuple(tuple(str(clean(cell)) for cell in row) for row in stored["rows"])
        return Table(title=title, head=head, rows=rows)

    def _figure(self, title: str, name: str) -> Figure:
        file = self.run.artifact(f"{name}.png")

        def draw(theme: Theme) -> bytes:
            return file.read_bytes()

        return Figure(name=name, about=title, draw=draw)
