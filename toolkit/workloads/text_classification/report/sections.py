"""The report sections of a text classification: classes, curves, mistakes, labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from toolkit.report import formats
from toolkit.report.blocks import Block, Figure, Section, Text, figure, side_by_side, table, turned
from toolkit.report.plotting.curves import Columns
from toolkit.report.reading import read_artifact, read_artifacts
from toolkit.report.task_report import Scores, TaskReport
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.files import ClassificationFiles
from toolkit.workloads.text_classification.metrics.declared import BY_NAME
from toolkit.workloads.text_classification.report import tables
from toolkit.workloads.text_classification.report.class_values import (
    ClassReport,
    LabelCounts,
    TwoClassCurves,
    View,
    by_view,
    class_report,
    label_counts,
    two_class_curves,
)
from toolkit.workloads.text_classification.report.mistakes import worst_mistakes

_PLOTS = "toolkit.workloads.text_classification.report.class_plots"
#: More runs than this become rows, because columns would not fit.
_RUN_COLUMNS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassificationReport(TaskReport):
    """The artifacts of a text classification.

    classes      scores per class, by the view's name
    two_classes  curves of two classes, by the view's name
    labels       distribution of the labels; None without its file
    """

    run: RunDir
    classes: Mapping[str, ClassReport]
    two_classes: Mapping[str, TwoClassCurves]
    labels: LabelCounts | None

    @property
    def run_id(self) -> str:
        return str(formats.clean(self.run.run_id))

    @classmethod
    def read(cls, run: RunDir, scores: Scores, curves: Mapping[str, Columns]) -> Self:
        files = ClassificationFiles(run)
        return cls(
            run=run,
            classes=by_view(read_artifacts(files.classes("*"), class_report)),
            two_classes=by_view(read_artifacts(files.curves("*"), two_class_curves)),
            labels=read_artifact(files.labels, label_counts),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "classes": {name: asdict(report) for name, report in self.classes.items()},
            "two_classes": {name: asdict(curves) for name, curves in self.two_classes.items()},
            "labels": None if self.labels is None else asdict(self.labels),
        }

    def sections(self) -> Iterator[Section]:
        """Yield the last split, its wrong predictions, and the labels; the other splits are folded away."""
        splits = list(dict.fromkeys(report.view.split for report in self.classes.values()))
        for split in reversed(splits):
            folded = "" if split == splits[-1] else f"Classes, confusion and curves of {split}"
            yield from self._split(split, folded)
        yield from self.mistakes()
        if self.labels is not None:
            yield Section(title="Labels", blocks=tuple(self._labels(self.labels)))

    def _split(self, split: str, folded: str) -> Iterator[Section]:
        for report in self.classes.values():
            if report.view.split == split:
                scores = tables.classes_table(report)
                confusion = tables.confusion_tables(report, self._confusion_figure(report))
                blocks: tuple[Block, ...] = (scores, *confusion, *tables.class_numbers(report))
                yield Section(title=scores.title, blocks=blocks, folded=folded)
        if levels := self._levels(split):
            blocks = (self._curves(levels), *map(tables.thresholds_table, levels))
            numbers = map(tables.curves_numbers, levels)
            title = f"ROC, precision and recall ({split})"
            yield Section(title=title, blocks=(*blocks, *numbers), folded=folded)

    def _levels(self, split: str) -> list[TwoClassCurves]:
        return [curves for curves in self.two_classes.values() if curves.view.split == split]

    def _confusion_figure(self, report: ClassReport) -> Figure | None:
        if report.confusion is None:
            return None
        name = formats.file_name(f"confusion_{report.view.name}")
        about = f"Confusion, {report.view.title}, of {self.run_id}"
        return figure(name, about, f"{_PLOTS}:confusion_plot", self.run_id, report)

    def _curves(self, levels: Sequence[TwoClassCurves]) -> Figure:
        split, names = levels[0].view.split, [curves.view.name for curves in levels]
        classes = [self.classes[name] for name in names if name in self.classes]
        about = f"ROC and precision over recall, {split}, of {self.run_id}"
        name = formats.file_name(f"curves_{split}")
        return figure(name, about, f"{_PLOTS}:curves_plot", self.run_id, levels, classes)

    def _labels(self, counts: LabelCounts) -> Iterator[Block]:
        if any(map(any, counts.texts.values())):
            about = f"Share of each label in each split of {self.run_id}"
            yield figure("labels", about, f"{_PLOTS}:labels_plot", self.run_id, counts)
        yield tables.labels_table("Labels", counts.labels, counts.texts)
        if counts.folded:
            yield tables.labels_table("Labels (fragments)", counts.labels, counts.samples)
        yield from (Text(text=note, style="note") for note in counts.notes)
        yield tables.labels_numbers(counts)

    def mistakes(self) -> Iterator[Section]:
        """Yield the most confident mistakes on the test set; before the test, on the validation set.

        If texts were folded, mistakes are of whole texts. Raises DataError.
        """
        files = ClassificationFiles(self.run)
        names = ((split, f"{split}{text}") for split in ("test", "validation") for text in ("_text", ""))
        views = (View(name=name, split=split) for split, name in names)
        view = next((view for view in views if files.predictions(view.name).exists()), None)
        if view is None:
            return
        labels = self.classes[view.name].labels if view.name in self.classes else ()
        if found := worst_mistakes(self.run, view.name, labels):
            made = tables.mistakes_table(view, found)
            yield Section(title=made.title, blocks=(made,), page_only=True)

    @classmethod
    def compared(cls, runs: Sequence[tuple[str, Self]], split: str) -> Iterator[Section]:
        """Yield the F1 of each class if the runs have the same classes, and their plots side by side."""
        yield from _same_classes(runs, split)
        matrices = [
            report._confusion_figure(report.classes[split]) for _, report in runs if split in report.classes
        ]
        levels = [report._levels(split) for _, report in runs]
        curves = [report._curves(each) for (_, report), each in zip(runs, levels, strict=True) if each]
        yield from side_by_side("Confusion", [each for each in matrices if each is not None])
        yield from side_by_side("ROC, precision and recall", curves)


def _same_classes(runs: Sequence[tuple[str, ClassificationReport]], split: str) -> Iterator[Section]:
    reports = [(name, report.classes[split]) for name, report in runs if split in report.classes]
    if len(reports) < 2 or len({report.labels for _, report in reports}) > 1:
        return
    scores = [[row.f1 for row in report.classes] for _, report in reports]
    rows = [
        (formats.one_line(label, 60), *(formats.score(BY_NAME["f1"], each[place]) for each in scores))
        for place, label in enumerate(reports[0][1].labels)
    ]
    best = frozenset(
        (place, column + 1)
        for place, values in enumerate(zip(*scores, strict=True))
        for column in formats.best_places(BY_NAME["f1"], values, "max")
    )
    made = table(f"F1 of each class ({split})", ["class", *(name for name, _ in reports)], rows, best=best)
    shown = turned(made, "run") if len(reports) > _RUN_COLUMNS else made
    yield Section(title=made.title, blocks=(shown,), page_only=True)
