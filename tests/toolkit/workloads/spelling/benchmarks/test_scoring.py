"""Folders of benchmarks: the files in them, their scores, and tables of all models."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.toolkit.workloads.spelling.benchmarks.folders import (
    correction_benchmark,
    word_benchmark,
    write_lines,
)
from toolkit.errors import UserError
from toolkit.report.blocks import Table
from toolkit.report.rendering.markdown import table as markdown
from toolkit.workloads.spelling.benchmarks.layout import Benchmark, find_benchmarks
from toolkit.workloads.spelling.benchmarks.scoring import Predictors, Result, entries, score_entries
from toolkit.workloads.spelling.benchmarks.tables import latex, tables, terminal


def scored(root: Path, predictors: Predictors | None = None) -> tuple[list[Result], list[str]]:
    found = list(score_entries(entries(find_benchmarks(root), predictors or {}, {})))
    results = [each for each in found if isinstance(each, Result)]
    return results, [str(each) for each in found if not isinstance(each, Result)]


def shown(table: Table) -> dict[str, list[str]]:
    return {
        model: [f"*{cell}*" if (row, column) in table.best else cell for column, cell in enumerate(cells, 1)]
        for row, (model, *cells) in enumerate(table.rows)
    }


def table(root: Path, title: str) -> Table:
    (found,) = [each for metric, each in tables(scored(root)[0]) if metric.title == title]
    return found


def test_predictions_are_found_beside_a_benchmark_and_in_the_results_folder(tmp_path: Path) -> None:
    correction_benchmark(tmp_path)
    word_benchmark(tmp_path)
    words, corrections = find_benchmarks(tmp_path)
    assert (words.kind, words.title, list(words.predictions)) == ("sed_words", "wiki/realistic", ["half"])
    assert (corrections.kind, corrections.title) == ("sec", "neuspell/jfleg")
    assert list(corrections.predictions) == ["idle_1", "right"]


@pytest.mark.parametrize("part, count", [(".", 2), ("sec", 2), ("sec/neuspell", 2), ("sec/neuspell/dev", 1)])
def test_a_part_of_a_root_folder_can_be_scored(tmp_path: Path, part: str, count: int) -> None:
    correction_benchmark(tmp_path)
    correction_benchmark(tmp_path, "dev")
    assert len(find_benchmarks(tmp_path / part)) == count


def test_a_folder_above_a_root_may_have_the_name_of_a_kind(tmp_path: Path) -> None:
    root = tmp_path / "sec" / "benchmarks"
    folder = word_benchmark(root)
    for part in (root, root / "sed_words", folder):
        (found,) = find_benchmarks(part)
        assert (found.root, found.kind, found.title) == (root, "sed_words", "wiki/realistic")


def test_links_lead_out_of_a_root_and_into_it(tmp_path: Path) -> None:
    folder = word_benchmark(tmp_path / "elsewhere")
    (tmp_path / "bench").mkdir()
    kind = tmp_path / "bench" / "sed_words"
    kind.symlink_to(folder.parent.parent)
    (found,) = find_benchmarks(kind)
    assert found.folder == kind / "wiki" / "realistic"
    (tmp_path / "link").symlink_to(folder)
    assert [each.folder for each in find_benchmarks(tmp_path / "link")] == [folder]


def test_a_folder_without_benchmarks_is_refused_with_the_expected_files(tmp_path: Path) -> None:
    (tmp_path / "sec" / "empty" / "split").mkdir(parents=True)
    with pytest.raises(UserError, match=r"no benchmarks; expected KIND/GROUP/SPLIT/corrupt\.txt"):
        find_benchmarks(tmp_path)
    with pytest.raises(UserError, match="nowhere is not a folder"):
        find_benchmarks(tmp_path / "nowhere")


def test_a_lowercase_file_makes_case_irrelevant(tmp_path: Path) -> None:
    folder = correction_benchmark(tmp_path)
    write_lines(folder / "predictions" / "right.txt", "THE CAT SAT", "A DOG", "FINE")
    write_lines(folder / "lowercase.txt", "1", "1", "1")
    assert {each.model: each.figures["f1"] for each in scored(tmp_path)[0]} == {"idle_1": 0.0, "right": 1.0}


def test_invalid_benchmark_is_reported_once_and_the_others_are_scored(tmp_path: Path) -> None:
    (correction_benchmark(tmp_path) / "correct.txt").unlink()
    word_benchmark(tmp_path)
    results, faults = scored(tmp_path)
    assert [each.model for each in results] == ["half"]
    (fault,) = faults
    assert fault.endswith("sec/neuspell/jfleg/correct.txt cannot be read: No such file or directory")


def test_progress_is_reported(tmp_path: Path) -> None:
    correction_benchmark(tmp_path)
    steps: list[float] = []
    list(score_entries(entries(find_benchmarks(tmp_path), {}, {}), advance=steps.append))
    assert sum(steps) == 2


def test_a_table_marks_the_highest_score_and_the_lowest_distance(tmp_path: Path) -> None:
    correction_benchmark(tmp_path)
    second = correction_benchmark(tmp_path, "second")
    (second / "predictions" / "right.txt").unlink()
    f1 = table(tmp_path, "Correction F1")
    assert f1.head[1:] == ("neuspell/jfleg", "neuspell/second")
    assert shown(f1) == {"idle_1": ["0.00", "0.00"], "right": ["*100.00*", "–"]}
    distance = table(tmp_path, "Mean normalised edit distance")
    assert shown(distance)["right"] == ["*0.0000*", "–"]
    assert shown(distance)["idle_1"][0] == "0.1939"


def test_values_that_are_equal_after_rounding_are_marked_alike(tmp_path: Path) -> None:
    benchmark = Benchmark(root=tmp_path, kind="sed_words", group="a", split="b")
    results = [
        Result(benchmark=benchmark, model=name, figures={"f1": value})
        for name, value in (("one", 0.123401), ("two", 0.123399), ("three", 0.1233))
    ]
    ((_, made),) = tables(results)
    assert shown(made) == {"one": ["*12.34*"], "two": ["*12.34*"], "three": ["12.33"]}


def test_documents_have_whole_titles_and_latex_has_the_best_value_in_bold(tmp_path: Path) -> None:
    correction_benchmark(tmp_path)
    distance = table(tmp_path, "Mean normalised edit distance")
    assert distance.title in markdown(distance).splitlines()[0]
    assert rf"\caption{{{distance.title}}}" in latex(distance)
    lines = latex(table(tmp_path, "Correction F1")).splitlines()
    assert lines[2] == r"\caption{Corrections (sec): Correction F1, \%}"
    assert lines[3] == r"\begin{tabular}{lr}"
    assert r"idle\_1 & 0.00 \\" in lines
    assert r"right & \textbf{100.00} \\" in lines


def test_a_terminal_shows_a_dash_for_a_missing_value_and_no_control_characters(tmp_path: Path) -> None:
    correction_benchmark(tmp_path, "second")
    folder = correction_benchmark(tmp_path)
    (folder / "predictions" / "right.txt").rename(folder / "predictions" / "bad\x1b[31m[red].txt")
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(terminal(table(tmp_path, "Correction F1")))
    text = console.export_text()
    assert "\x1b" not in text
    assert "[31m[red]" in text
    (line,) = [line.split() for line in text.splitlines() if line.split()[:1] == ["right"]]
    assert line == ["right", "–", "100.00"]
