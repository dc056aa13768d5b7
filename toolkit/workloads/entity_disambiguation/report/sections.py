"""Entity disambiguation's part of the report of a run: its slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from toolkit.report import formats
from toolkit.report.blocks import Block, Figure, Section, figure, side_by_side
from toolkit.report.plotting.curves import Columns, points
from toolkit.report.reading import read_artifacts, split_position
from toolkit.report.task_report import Scores, TaskReport
from toolkit.run.run_dir import RunDir
from toolkit.workloads.entity_disambiguation.config import WHOLE_SLICE
from toolkit.workloads.entity_disambiguation.files import DisambiguationFiles
from toolkit.workloads.entity_disambiguation.report import slice_tables
from toolkit.workloads.entity_disambiguation.report.slice_tables import PREFIX, SliceReport

_PLOTS = "toolkit.workloads.entity_disambiguation.report.slice_plots"
#: The split that is scored during training.
_SPLIT = "validation"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicesReport(TaskReport):
    """The slices of a run by split, in the order of use, and its scores during training."""

    shows_parts: ClassVar[bool] = True

    run_id: str
    slices: Mapping[str, SliceReport]
    scores: Scores
    curves: Mapping[str, Columns]

    @classmethod
    def read(cls, run: RunDir, scores: Scores, curves: Mapping[str, Columns]) -> Self:
        pattern = DisambiguationFiles(run).slices("*")
        found = read_artifacts(pattern, SliceReport.of)
        in_order = sorted(found, key=lambda report: split_position(report.split))
        by_split = {report.split: report for report in in_order}
        return cls(run_id=formats.clean(run.run_id), slices=by_split, scores=scores, curves=curves)

    def to_json(self) -> dict[str, Any]:
        return {"slices": {split: report.to_json() for split, report in self.slices.items()}}

    def sections(self) -> Iterator[Section]:
        """Yield the slices of the last split, folded slices of the other splits, and curves over the steps.

        Before the final evaluation, yield the newest accuracies instead of the slices.
        """
        for place, report in enumerate(reversed(list(self.slices.values()))):
            drawn: tuple[Block, ...] = () if place else (self._figure(report),)
            views = (False, True) if report.has_outside else (False,)
            shown = (slice_tables.slice_table(report, inside) for inside in views)
            yield Section(
                title=f"Slices ({report.split})",
                blocks=(*drawn, *shown, slice_tables.slice_numbers(report)),
                folded=f"Slices of {report.split}" if place else "",
            )
        latest = slice_tables.latest_table(_SPLIT, self.scores.get(_SPLIT, {}))
        if latest is not None and not self.slices:
            yield Section(title=latest.title, blocks=(latest,))
        if names := self._curves():
            about = f"Accuracy of each slice over the steps of {self.run_id}"
            code = f"{_PLOTS}:slices_over_time_plot"
            facts = (self.run_id, self.curves, names, self.slices.get(_SPLIT))
            yield Section(
                title="Slices over the steps", blocks=(figure("slices_over_time", about, code, *facts),)
            )

    def _figure(self, report: SliceReport) -> Figure:
        about = f"Accuracy of each slice against that of the most popular candidate of {self.run_id}"
        return figure("slices", about, f"{_PLOTS}:slices_plot", self.run_id, report)

    def _curves(self) -> list[str]:
        """Return the slices with curves, except slices without mentions."""
        report, known = self.slices.get(_SPLIT), self.curves.get(_SPLIT, {})
        names = (name.removeprefix(PREFIX) for name in known if name.startswith(PREFIX))
        empty = {name for name, scores in report.scores.items() if not scores.mentions} if report else set()
        left_out = {WHOLE_SLICE, *empty}
        return [
            name for name in names if name not in left_out and points(self.curves, _SPLIT, PREFIX + name)[0]
        ]

    @classmethod
    def compared(cls, runs: Sequence[tuple[str, Self]], split: str) -> Iterator[Section]:
        """Yield the accuracies of all runs in one table, and their plots side by side."""
        reports = [(name, report.slices[split]) for name, report in runs if split in report.slices]
        if reports:
            made = slice_tables.comparison_table(reports, split)
            yield Section(title=made.title, blocks=(made,))
        figures = [report._figure(report.slices[split]) for _, report in runs if split in report.slices]
        yield from side_by_side("Slices", figures)
