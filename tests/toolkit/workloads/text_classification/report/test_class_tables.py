"""Scores and confusions of classes on a terminal."""

from __future__ import annotations

from tests.toolkit.report.drawn import printed
from tests.toolkit.report.test_report_tables import rows_of
from tests.toolkit.workloads.text_classification.report.classified_runs import write_classes
from toolkit.files import read_json, write_json
from toolkit.report.rendering.writing import write_report
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.files import ClassificationFiles


def test_the_scores_of_each_class_are_above_the_macro_average(finished_run: RunDir) -> None:
    rows = rows_of(printed([finished_run]))
    negative = ["negative", "83.33", "%", "85.11", "%", "84.21", "%", "47"]
    macro = ["macro", "average", "84.38", "%", "84.39", "%", "84.37", "%", "96"]
    assert negative in rows
    assert macro in rows
    assert rows.index(negative) < rows.index(macro)


def test_the_confusion_matrix_is_shaded_where_there_is_colour(finished_run: RunDir) -> None:
    assert ";48;2;" in printed([finished_run], colour=True)
    assert "\x1b[" not in printed([finished_run], colour=False)


def test_a_matrix_of_eleven_classes_with_long_names_fits_into_80_columns(new_run: RunDir) -> None:
    write_classes(new_run, [f"a rather long class {number:02d}" for number in range(11)])
    narrow = printed([new_run], 80)
    matrix = rows_of(narrow.partition("Confusion (test)")[2])
    assert ["true", "╲", *map(str, range(1, 12))] in matrix
    assert any(row[-12:-9] == ["1", "40", "7"] for row in matrix)
    shares = rows_of(narrow.partition("Confusion, % (test)")[2])
    assert any(row[-12:-9] == ["1", "85.1", "14.9"] for row in shares)
    assert "true ╲ predicted" in printed([new_run], 250)


def test_a_matrix_too_wide_for_the_terminal_is_replaced_by_the_most_frequent_confusions(
    new_run: RunDir,
) -> None:
    write_classes(new_run, [f"class_{number:02d}" for number in range(30)])
    narrow, wide = printed([new_run], 80), printed([new_run], 400)
    assert ["class_29", "class_00", "36"] in rows_of(narrow)
    assert "true ╲" not in narrow
    assert "true ╲ predicted" in wide
    assert "Most frequent confusions" not in wide


def test_table_of_very_many_classes_shows_the_classes_with_the_lowest_f1(new_run: RunDir) -> None:
    write_classes(new_run, [f"class_{number:03d}" for number in range(100)])
    text = printed([new_run], 80)
    assert "the 40 lowest F1 of 100 classes" in text
    assert any(
        row[:2] == ["macro", "average"] and row[-1] == f"{100 * 47 + 99 * 100:,}" for row in rows_of(text)
    )
    assert len([row for row in rows_of(text) if row and row[0].startswith("class_") and "%" in row]) == 40


def test_most_frequent_confusions_are_shown_everywhere_without_a_matrix(new_run: RunDir) -> None:
    """Of very many classes the matrix is not written."""
    write_classes(new_run, ["one", "two", "three"])
    document = read_json(ClassificationFiles(new_run).classes("test"))
    write_json(
        ClassificationFiles(new_run).classes("test"),
        {**document, "confusion": None, "confusions": [["two", "one", 77]]},
    )
    text = printed([new_run], 120)
    assert "Most frequent confusions" in text
    assert ["two", "one", "77"] in rows_of(text)
    page = write_report(new_run)
    assert (page.parent / "confusions_test.csv").read_text() == "true,predicted,samples\ntwo,one,77\n"
    assert not (page.parent / "confusion_test.csv").exists()
    assert (page.parent / "classes_test.csv").read_text().startswith("class,precision")
    assert ">77<" in page.read_text()
