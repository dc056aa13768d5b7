"""What points add to the report of a run."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.report.blocks import Numbers, Section, Text, table
from toolkit.report.task_report import TaskReport


@dataclass(frozen=True)
class PointsReport(TaskReport):
    told: tuple[float, ...]

    @classmethod
    def read(cls, run, scores, curves):
        path = run.artifact("test_predictions.txt")
        return cls(tuple(map(float, path.read_text().split())) if path.exists() else ())

    def sections(self):
        if self.told:
            ends = table("Range", ["end", "y"], [["least", f"{min(self.told):.2f}"]])
            numbers = Numbers(name="told", head=["y"], rows=[[y] for y in self.told])
            yield Section(title="Points", blocks=(ends, Text(text="<b>a note</b>"), numbers))

    def to_json(self):
        return {"told": self.told}

    @classmethod
    def compared(cls, runs, split):
        rows = [[name, str(len(report.told))] for name, report in runs]
        yield Section(title="Points", blocks=(table("Compared", ["run", "points"], rows),))
