"""Plot confusion matrices, the curves of two classes, and the distribution of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.ticker import FuncFormatter, MaxNLocator

from toolkit.report import formats
from toolkit.report.plotting.figures import legend_above, one_panel, panel_grid, png
from toolkit.report.plotting.themes import LIGHT, Theme
from toolkit.workloads.text_classification.metrics.declared import BY_NAME
from toolkit.workloads.text_classification.report.class_values import ClassReport, LabelCounts, TwoClassCurves

_LABELLED_CLASSES = 40
_ANNOTATED_CLASSES = 16
_LABEL_WIDTH = 26


def confusion_plot(run_id: str, report: ClassReport, theme: Theme) -> bytes:
    """Draw the confusion matrix: colours are shares of the true class; cells have count and share."""
    counts = np.array(report.confusion, dtype=np.int64).reshape(len(report.labels), -1)
    sums = counts.sum(axis=1, keepdims=True)
    shares = 100 * np.divide(counts, sums, out=np.zeros(counts.shape), where=sums > 0)
    side = min(12.0, max(4.2, 1.6 + 0.75 * min(len(report.labels), _ANNOTATED_CLASSES)))
    title = f"Confusion, {report.view.title} · {run_id}"
    with one_panel(theme, title, width=side + 1.8, height=side) as (figure, axes):
        shades = LinearSegmentedColormap.from_list("shares", [theme.background, theme.series[0]])
        norm = PowerNorm(formats.SHADE_POWER, vmin=0, vmax=100)
        image = axes.imshow(shares, cmap=shades, norm=norm)
        bar = figure.colorbar(image, ax=axes, shrink=0.85)
        bar.set_label("share of the true class (%)")
        bar.outline.set_visible(False)
        axes.grid(False)
        axes.set_xlabel("predicted class")
        axes.set_ylabel("true class")
        _class_ticks(axes, report.labels)
        if len(report.labels) <= _ANNOTATED_CLASSES:
            _annotate(axes, counts, shares, theme)
        return png(figure)


def curves_plot(
    run_id: str, levels: Sequence[TwoClassCurves], classes: Sequence[ClassReport], theme: Theme
) -> bytes:
    """Draw ROC and precision over recall of one split, with whole texts and fragments in one picture.

    A dot is the result of the model's predictions.
    """
    curves = levels[0]
    title = f"Finding “{curves.positive}”, {curves.view.split} · {run_id}"
    with panel_grid(theme, title, 1, 2, (8.6, 4.6)) as (figure, (left, right)):
        left.plot([0, 1], [0, 1], color=theme.quiet, linewidth=1, linestyle=":")
        chance = curves.positives / max(curves.positives + curves.negatives, 1)
        right.axhline(chance, color=theme.quiet, linewidth=1, linestyle=":")
        for position, level in enumerate(levels):
            _roc(left, level, theme.series[position])
            _precision_recall(right, level, theme.series[position])
        for position, report in enumerate(classes):
            _predicted(left, right, report, theme, theme.series[position])
        _share_axes(left, "false positive rate (%)", "true positive rate (%)")
        _share_axes(right, "recall (%)", "precision (%)")
        left.legend(loc="lower right")
        right.legend(loc="lower left")
        left.set_title("ROC (dots: as predicted)", fontsize=10, loc="left")
        right.set_title("Precision over recall", fontsize=10, loc="left")
        return png(figure)


def labels_plot(run_id: str, counts: LabelCounts, theme: Theme) -> bytes:
    """Draw the share of each label in each split; of many labels, only the most frequent."""
    splits = {split: np.array(texts) for split, texts in counts.texts.items() if sum(texts)}
    totals = np.sum(list(splits.values()), axis=0)
    shown = np.argsort(-totals, kind="stable")[:_LABELLED_CLASSES]
    height = 0.8 / max(len(splits), 1)
    with one_panel(theme, f"Labels · {run_id}", height=1.5 + 0.36 * len(shown), title_pad=26) as (
        figure,
        axes,
    ):
        for position, (split, texts) in enumerate(splits.items()):
            places = np.arange(len(shown)) - 0.4 + (position + 0.5) * height
            colour = theme.series[position % len(theme.series)]
            axes.barh(
                places, 100 * texts[shown] / texts.sum(), height=0.9 * height, color=colour, label=split
            )
        names = [formats.one_line(counts.labels[place], _LABEL_WIDTH) for place in shown]
        axes.set_yticks(range(len(shown)), names)
        axes.invert_yaxis()
        axes.grid(False, axis="y")
        axes.set_xlabel("share of the split's texts (%)")
        legend_above(axes)
        return png(figure)


def _roc(axes: Axes, level: TwoClassCurves, colour: str) -> None:
    area = formats.score(BY_NAME["roc_auc"], level.roc_auc)
    # The curve of whole texts is drawn above the curve of fragments.
    depth = 2.5 if level.view.level == "fragment" else 3.0
    axes.plot(*level.roc, color=colour, linewidth=2, label=f"{level.view.title}: area {area}", zorder=depth)


def _precision_recall(axes: Axes, level: TwoClassCurves, colour: str) -> None:
    """Draw steps; the area below them is the average precision."""
    recall, precision = level.precision_recall
    area = formats.score(BY_NAME["average_precision"], level.average_precision)
    label = f"{level.view.title}: average {area}"
    axes.plot(
        [0, *recall],
        [*precision[:1], *precision],
        drawstyle="steps-pre",
        color=colour,
        linewidth=2,
        label=label,
    )


def _predicted(left: Axes, right: Axes, report: ClassReport, theme: Theme, colour: str) -> None:
    assert report.confusion is not None, "two classes have a matrix"
    (true_negatives, false_positives), (_, true_positives) = report.confusion
    positive = report.classes[1]
    rate = false_positives / max(true_negatives + false_positives, 1)
    style: dict[str, Any] = {"color": colour, "markersize": 8, "markeredgecolor": theme.ink, "zorder": 5}
    left.plot([rate], [positive.recall], "o", **style)
    if true_positives + false_positives:
        right.plot([positive.recall], [positive.precision], "o", **style)


def _share_axes(axes: Axes, x: str, y: str) -> None:
    percent = FuncFormatter(lambda value, _: f"{100 * value:g}")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=x, ylabel=y)
    axes.xaxis.set_major_formatter(percent)
    axes.yaxis.set_major_formatter(percent)


def _class_ticks(axes: Axes, labels: Sequence[str]) -> None:
    if len(labels) > _LABELLED_CLASSES:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
        axes.set_xlabel("predicted class (number)")
        axes.set_ylabel("true class (number)")
        return
    names = [formats.one_line(label, _LABEL_WIDTH) for label in labels]
    size = 10 if len(labels) <= _ANNOTATED_CLASSES else 7
    slanted = len(labels) > 6 or max(map(len, names), default=0) > 9
    axes.set_xticks(range(len(labels)), names, rotation=45 if slanted else 0, fontsize=size)
    axes.set_yticks(range(len(labels)), names, fontsize=size)
    if slanted:
        for text in axes.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")


def _annotate(axes: Axes, counts: Any, shares: Any, theme: Theme) -> None:
    for row, column in np.ndindex(counts.shape):
        if not counts[row, column]:
            axes.text(column, row, "0", ha="center", va="center", color=theme.quiet, fontsize=8.5)
            continue
        text = f"{formats.count(counts[row, column])}\n{shares[row, column]:.1f} %"
        # Cells with a large share are dark blue in the light theme, and light blue in the dark theme.
        dark_cell = (shares[row, column] > 40) == (theme is LIGHT)
        ink = "#ffffff" if dark_cell else "#1f2328"
        axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=8.5)
