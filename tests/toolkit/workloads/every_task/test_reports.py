"""Reports of our workloads on one or several runs."""

from __future__ import annotations

from pathlib import Path

from tests.toolkit.report.drawn import printed
from tests.toolkit.report.report_folders import write_config
from tests.toolkit.report.test_report_tables import rows_of
from tests.toolkit.workloads.entity_disambiguation.report.disambiguation_runs import write_disambiguation
from tests.toolkit.workloads.text_classification.report.classified_runs import write_finished
from toolkit.files import append_json_line
from toolkit.report.comparison.document import comparison_document
from toolkit.report.comparison.reading import compare
from toolkit.run.run_dir import RunDir


def test_comparison_has_only_plots_that_several_runs_share(tmp_path: Path) -> None:
    runs = [write_finished(tmp_path / f"sst2-a{seed}") for seed in (1, 2)]
    other = write_disambiguation(tmp_path / "ned-1")
    found = {section.title: section for section in comparison_document(compare([*runs, other])).sections}
    assert [title for title in found if "side by side" in title] == ["Confusion, side by side"]
    matrices = found["Confusion, side by side"].blocks
    assert [run.run_id in figure.about for run, figure in zip(runs, matrices, strict=False)] == [True, True]


def test_classes_are_compared_if_all_runs_have_the_same_classes(tmp_path: Path) -> None:
    runs = [write_finished(tmp_path / f"sst2-a{seed}") for seed in (1, 2)]
    title = "F1 of each class (test)"
    document = comparison_document(compare(runs))
    (found,) = next(section for section in document.sections if section.title == title).blocks
    assert found.rows[0] == ("negative", "84.21 %", "84.21 %")
    titles = [section.title for section in document.sections]
    assert titles[titles.index("Scores (test)") :][:3] == ["Scores (test)", title, "Confusion, side by side"]
    other = write_finished(tmp_path / "other", ["yes", "no"])
    assert title not in [section.title for section in comparison_document(compare([*runs, other])).sections]


def test_table_of_epochs_has_the_accuracies_of_the_task(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "corrections")
    write_config(run, kind="sec_nmt", metric="loss:min")
    training = {"loss": 2.0, "token_accuracy": 0.5}
    append_json_line(run.metrics, {"step": 10, "epoch": 1.0, "split": "train", **training})
    validation = {"loss": 1.0, "token_accuracy": 0.75, "sequence_accuracy": 0.125}
    append_json_line(run.metrics, {"step": 10, "epoch": 1.0, "split": "validation", **validation})
    rows = rows_of(printed([run], width=160).partition("Epochs")[2])
    losses = ["training", "loss", "validation", "loss"]
    accuracies = [*("training", "token", "accuracy"), *("validation", "token", "accuracy")]
    assert ["epoch", *losses, *accuracies, "validation", "sequence", "accuracy"] in rows
    assert ["1", "2.0000", "1.0000", "50.00", "%", "75.00", "%", "12.50", "%"] in rows
