"""What texts add to the report of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from stk_toy.texts import files
from toolkit.report.blocks import Numbers, Section, table
from toolkit.report.formats import clean
from toolkit.report.task_report import TaskReport


@dataclass(frozen=True)
class TextsReport(TaskReport):
    """Counts of (label, predicted label) in each split that was scored."""

    pairs: dict[str, Counter]

    @classmethod
    def read(cls, run, scores, curves):
        found = {split: clean(files.read_predictions(run, split)) for split in ("validation", "test")}
        return cls(
            {split: Counter((row[0], row[1]) for row in rows) for split, rows in found.items() if rows}
        )

    def sections(self):
        for split, pairs in self.pairs.items():
            rows = [[label, predicted, str(count)] for (label, predicted), count in sorted(pairs.items())]
            head = ["label", "predicted", "samples"]
            numbers = Numbers(name=f"labels_{split}", head=head, rows=rows)
            yield Section(title=f"Labels of {split}", blocks=(table("Labels", head, rows), numbers))

    def to_json(self):
        labels = {split: sorted({label for label, _ in pairs}) for split, pairs in self.pairs.items()}
        return {"labels": labels}
