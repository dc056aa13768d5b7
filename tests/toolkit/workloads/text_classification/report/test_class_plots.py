"""Confusion matrices as pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.toolkit.report.drawn import run_plots
from tests.toolkit.report.test_report_plots import pixels
from tests.toolkit.workloads.text_classification.report.classified_runs import write_classes, write_finished
from toolkit.report.plotting.themes import LIGHT
from toolkit.report.run.summary import summarize
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.files import ClassificationFiles

HOSTILE = ["<script>", "$x^{$ & \\frac", "日本語 🎬", "مرحبا", "\x00\x1b\u202e", "", "long " * 40]


@pytest.mark.filterwarnings("error::UserWarning", "error::RuntimeWarning", "error::DeprecationWarning")
def test_hostile_labels_are_drawn_as_text(tmp_path: Path) -> None:
    run = write_finished(tmp_path / "run-$x^{$-<b>", HOSTILE)
    for draw in run_plots(summarize(run)).values():
        assert pixels(draw(LIGHT)).shape[0] > 300


@pytest.mark.parametrize("classes", [1, 16, 17, 41, 150])
def test_a_confusion_matrix_of_any_size_is_drawn(new_run: RunDir, classes: int) -> None:
    write_classes(new_run, [f"class {number}" for number in range(classes)])
    image = pixels(run_plots(summarize(new_run))["confusion_test.png"](LIGHT))
    assert max(image.shape) < 2400


@pytest.mark.filterwarnings("error::UserWarning", "error::RuntimeWarning", "error::DeprecationWarning")
def test_a_class_that_never_occurs_is_an_empty_row(new_run: RunDir) -> None:
    write_classes(new_run, ["a", "b"])
    path = ClassificationFiles(new_run).classes("test")
    path.write_text(path.read_text().replace("40", "0", 1).replace("7", "0", 1))
    summary = summarize(new_run)
    assert summary.own.classes["test"].confusion[0] == (0, 0)
    image = pixels(run_plots(summary)["confusion_test.png"](LIGHT))
    white = (image == 1.0).all(axis=2).mean()
    assert white > 0.5  # both cells of the row are paper


def test_greater_shares_have_darker_cells(new_run: RunDir) -> None:
    """Of 47 samples 40 are right: the diagonal is dark, its neighbour light but not white."""
    write_classes(new_run, ["a", "b"])
    image = pixels(run_plots(summarize(new_run))["confusion_test.png"](LIGHT))
    colours, counts = np.unique(image.reshape(-1, 3), axis=0, return_counts=True)
    shades = sorted(tuple(colour) for colour, count in zip(colours, counts, strict=True) if count > 20_000)
    assert len(shades) == 5  # two cells on the diagonal, two beside it, and the paper
    assert shades[-1] == (1.0, 1.0, 1.0)
    cells = np.array([np.argwhere((image == shade).all(axis=2)).mean(axis=0) for shade in shades[:4]])
    is_on_the_diagonal = (cells - cells.mean(axis=0)).prod(axis=1) > 0
    assert is_on_the_diagonal.tolist() == [True, True, False, False]
