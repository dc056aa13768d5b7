"""Several runs side by side: settings, means over seeds, differences; a damaged run hides no other."""

from __future__ import annotations

import csv
import io
import json
import math
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.toolkit.report.drawn import a_terminal, comparison_plots, printed
from tests.toolkit.report.parsed_page import parse
from tests.toolkit.report.report_folders import (
    with_seed,
    write_attempts,
    write_config,
    write_failure,
    write_finished,
    write_metrics,
    write_points,
)
from toolkit.files import read_json, write_json
from toolkit.report.comparison.document import comparison_document, write_comparison
from toolkit.report.comparison.groups import groups, has_seeds, spread, spread_text
from toolkit.report.comparison.reading import compare
from toolkit.report.comparison.tables import (
    best_places,
    costs_table,
    differences_numbers,
    differences_table,
    groups_table,
    runs_table,
    scores_table,
)
from toolkit.report.plotting.themes import DARK
from toolkit.report.rendering.terminal import show
from toolkit.report.run.summary import summarize
from toolkit.run.run_dir import RunDir
from toolkit.workload import LOSS


def seeded(path: Path, lr: float, seed: int, accuracy: float | None) -> RunDir:
    """A finished run of a setting with this accuracy on the test set."""
    run = with_seed(write_finished(path, lr=lr), seed)
    result = read_json(run.result)
    result["metrics"]["test"]["accuracy"] = accuracy
    write_json(run.result, result)
    return run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[RunDir]:
    """Two settings: three seeds of one, of which one run has not finished, and one of the other."""
    folder = tmp_path_factory.mktemp("runs")
    found = [seeded(folder / f"sst2-a{seed}", 0.001, seed, 0.7 + 0.1 * seed) for seed in (1, 2, 3)]
    found[2].result.unlink()
    return [*found, seeded(folder / "sst2-b1", 0.01, 1, 0.5)]


@pytest.fixture(scope="module")
def motley(runs: list[RunDir], tmp_path_factory: pytest.TempPathFactory) -> list[RunDir]:
    """A finished run, one of another task, one that failed, one that never began, one that is damaged."""
    folder = tmp_path_factory.mktemp("motley")
    failed, new, damaged = (RunDir(folder / name) for name in ("failed-1", "new-1", "<b>bad-1"))
    for run in (failed, new, damaged):
        write_config(run)
    with_seed(new, 8)
    write_metrics(failed)
    write_attempts(failed, finished=False)
    write_failure(failed)
    damaged.result.write_text("[1, 2")
    return [runs[0], write_points(folder / "points-1"), failed, new, damaged]


def table(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


# ---- settings and seeds


def test_runs_with_the_same_seed_count_once(tmp_path: Path) -> None:
    """Of two runs of a seed, the one that has finished counts."""
    found = [
        seeded(tmp_path / f"run-{name}", 0.001, seed, 0.8) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    found[0].result.unlink()
    (group,) = groups([summarize(run) for run in found])
    assert [run.run_id for run in group.runs] == ["run-b", "run-c"]
    (row,) = groups_table([summarize(run) for run in found]).rows
    assert row[1] == "2"


def test_runs_of_different_code_are_no_repetitions(tmp_path: Path) -> None:
    found = [seeded(tmp_path / f"run-{seed}", 0.001, seed, 0.8) for seed in (1, 2, 3, 4)]
    for run, text in zip(found, "xxyz", strict=True):
        (run.code / "project").mkdir(parents=True)
        (run.code / "project" / "net.py").write_text(text)
        (run.code / "toolkit").mkdir()
        (run.code / "toolkit" / "files.py").write_text(run.run_id)
        (run.code / "project" / "results.csv").write_text(run.run_id)
    (renamed := found[3].config).write_text(renamed.read_text().replace("name: ", "name: wide-"))
    first, second, third = groups([summarize(run) for run in found])
    assert [run.run_id for run in first.runs] == ["run-1", "run-2"]
    assert [first.label, second.label] == [
        f"{first.runs[0].name} ({run.run_id})" for run in (found[0], found[2])
    ]
    assert third.label == third.runs[0].name


def test_runs_without_a_seed_are_no_repetitions(tmp_path: Path) -> None:
    """Those of a program have none, and two of them may differ only in their names."""
    found = [write_finished(tmp_path / name) for name in ("run-a", "run-b")]
    for run in found:
        run.config.write_text(run.config.read_text().replace("seed: 7\n", ""))
    summaries = [summarize(run) for run in found]
    assert [[run.run_id for run in group.runs] for group in groups(summaries)] == [["run-a"], ["run-b"]]
    assert not has_seeds(groups(summaries))
    assert len(groups([*summaries, summaries[0]])) == 2


def test_resources_and_checkpoint_keys_do_not_separate_settings(tmp_path: Path) -> None:
    runs = [write_finished(tmp_path / name) for name in ("run-a", "run-b")]
    for nodes, run in enumerate(runs, start=1):
        with open(with_seed(run, nodes).config, "a") as stream:
            stream.write(f"resources:\n  nodes: {nodes}\ncheckpoint:\n  keep: {nodes + 1}\n")
    (group,) = groups([summarize(run) for run in runs])
    assert len(group.runs) == 2


@pytest.mark.parametrize("earlier, groups_count", [("auto", 1), ("on", 2)])
def test_a_key_that_earlier_versions_lack_counts_as_its_default(
    tmp_path: Path, earlier: str, groups_count: int
) -> None:
    old, new = (with_seed(write_finished(tmp_path / name), seed) for seed, name in enumerate(("old", "new")))
    old.config.write_text(f"{old.config.read_text()}model:\n  kind: convolutions\n")
    text = new.config.read_text().replace("train:\n", f"train:\n  compile: {earlier}\n")
    new.config.write_text(f"{text}model:\n  teacher: null\n  kind: convolutions\n")
    summaries = [summarize(run) for run in (old, new)]
    assert len(groups(summaries)) == groups_count
    rows = {row[0]: row[1:] for row in differences_table(summaries).rows}
    assert rows.pop("seed") == ("0", "1")
    assert rows == ({} if earlier == "auto" else {"train.compile": ("auto", "on")})


def test_mean_and_deviation_cover_finished_runs_only(runs: list[RunDir]) -> None:
    (first, second) = groups_table([summarize(run) for run in runs]).rows
    deviation = 100 * statistics.stdev([0.8, 0.9])
    assert first[:2] == ("lr=0.001", "2 of 3")
    assert first[3] == f"85.00 ± {deviation:.2f} %"
    assert (second[1], second[3]) == ("1", "50.00 %")


def test_a_mean_that_lacks_the_score_of_a_finished_run_has_its_own_count(tmp_path: Path) -> None:
    scores = (0.8, 0.9, None)
    found = [seeded(tmp_path / f"run-{seed}", 0.001, seed, score) for seed, score in enumerate(scores)]
    (row,) = groups_table([summarize(run) for run in found]).rows
    assert (row[1], row[3]) == ("3", "85.00 ± 7.07 % (n = 2)")


@given(st.lists(st.floats(-1e6, 1e6), min_size=2))
def test_spread_is_mean_and_sample_deviation(values: list[float]) -> None:
    found = spread([*values, math.nan, math.inf])
    assert found.runs == len(values)
    assert found.mean == pytest.approx(statistics.fmean(values))
    assert found.deviation == pytest.approx(statistics.stdev(values))


def test_spread_of_one_run_has_no_deviation_and_of_no_run_is_a_dash() -> None:
    assert spread_text(LOSS, spread([0.25])) == "0.2500"
    assert spread_text(LOSS, spread([math.nan])) == "–"


# ---- tables


def test_each_run_has_a_row_with_its_best_and_its_scores(runs: list[RunDir]) -> None:
    found = runs_table(compare([runs[0], runs[2]]))
    titles = ("best accuracy", "test loss", "test accuracy", "test macro F1")
    assert found.head == ("run", "state", "step", *titles, "time")
    scores = ("80.00 % @ 200", "0.4312", "80.00 %", "78.50 %")
    assert found.rows[0] == ("sst2-a1", "finished", "300", *scores, "5 min 00 s")
    assert found.rows[1][:-1] == ("sst2-a3", "unfinished", "300", "80.00 % @ 200", "–", "–", "–")


def test_the_best_of_each_score_is_marked(runs: list[RunDir]) -> None:
    found = runs_table(compare(runs))
    column = found.head.index("test accuracy")
    assert [row for row, at in found.best if at == column] == [1]


def test_the_goal_in_the_config_overrides_the_declared_goal(runs: list[RunDir]) -> None:
    summaries = [summarize(run) for run in runs[:2]]
    assert best_places(summaries, "loss", [0.5, 0.25]) == [1]
    assert best_places(summaries, "accuracy", [0.5, 0.25]) == [0]
    for summary in summaries:
        summary.config["evaluation"] = {"metric": "accuracy:min"}
    assert best_places(summaries, "accuracy", [0.5, 0.25]) == [1]


def test_nothing_is_best_if_the_goal_is_unknown_or_contradictory(runs: list[RunDir]) -> None:
    summaries = [summarize(run) for run in runs[:2]]
    assert best_places(summaries, "loss_of_an_old_run", [0.5, 0.25]) == []
    summaries[0].config["evaluation"] = {"metric": "accuracy:min"}
    assert best_places(summaries, "accuracy", [0.5, 0.25]) == []


def test_scores_that_are_shown_equal_are_equally_good(runs: list[RunDir]) -> None:
    summaries = [summarize(run) for run in runs[:3]]
    assert best_places(summaries, "loss", [0.5, 0.5]) == []
    assert best_places(summaries, "loss", [None, math.nan, 0.5]) == []
    assert best_places(summaries, "accuracy", [0.9, 0.90000001, 0.1]) == [0, 1]


def test_differences_are_grouped_with_resources_at_the_end(runs: list[RunDir], tmp_path: Path) -> None:
    other = write_finished(tmp_path / "other", lr=0.01, epochs=4)
    other.config.write_text("resources:\n  nodes: 2\n" + other.config.read_text())
    found = differences_table([summarize(runs[0]), summarize(other)])
    assert [row[0] for row in found.rows] == ["seed", "train.epochs", "optimizer.lr", "resources.nodes"]
    assert found.rows[-1][1:] == ("–", "2")
    assert found.parts == {1, 2, 3}


def test_long_values_that_differ_at_their_end_look_different(tmp_path: Path) -> None:
    commands = tuple(f"train.py --data /shared/{'projects/' * 10}v{version}.jsonl" for version in (1, 2))
    runs = [write_finished(tmp_path / str(place), lr=command) for place, command in enumerate(commands)]
    summaries = [summarize(run) for run in runs]
    assert differences_table(summaries).rows == (("optimizer.lr", *commands),)
    assert differences_numbers(summaries).rows == [["optimizer.lr", *commands]]


def test_many_runs_with_few_differences_have_one_row_each(tmp_path: Path) -> None:
    runs = [write_finished(tmp_path / f"run-{number}", lr=0.1 * number) for number in range(1, 8)]
    found = differences_table([summarize(run) for run in runs])
    assert found.head == ("run", "optimizer.lr")
    assert len(found.rows) == 7


def test_every_score_of_few_runs_has_a_row(runs: list[RunDir]) -> None:
    summaries = [summarize(run) for run in runs[:2]]
    found = scores_table(summaries)
    assert found.head == ("metric", "sst2-a1", "sst2-a2")
    assert ("macro precision", "79.00 %", "79.00 %") in found.rows
    assert found.best == {([row[0] for row in found.rows].index("accuracy"), 2)}


def test_costs_are_added_up(runs: list[RunDir]) -> None:
    found = costs_table([summarize(run) for run in runs])
    assert found.rows[0][:2] == ("sst2-a1", "2")
    assert found.feet == (("all", "", "", "", "", "1.00", "0.12"),)


# ---- runs of all kinds


@pytest.mark.parametrize("width", [60, 80, 200])
def test_runs_in_any_state_are_shown_in_a_terminal(motley: list[RunDir], width: int) -> None:
    text = printed(motley, width)
    assert max(map(cell_len, text.splitlines())) <= width
    for word in ("finished", "failed", "pending", "unreadable"):
        assert word in text


def test_narrow_terminal_leaves_out_the_least_important_columns(motley: list[RunDir]) -> None:
    narrow, wide = (printed(motley, width).partition("key ")[0] for width in (60, 200))
    assert "test loss" in " ".join(wide.split())
    assert "best" in wide
    assert "best" not in narrow
    assert "79.12 %" in narrow or "80.00 %" in narrow


def test_damaged_run_is_listed_with_its_error_beside_the_others(motley: list[RunDir]) -> None:
    found = compare(motley)
    assert len(found.runs) == 4
    (trouble,) = found.unreadable.values()
    assert "result.json: cannot be read" in trouble
    assert runs_table(found).rows[-1][:3] == ("<b>bad-1", "unreadable", "–")


@pytest.mark.slow
@pytest.mark.filterwarnings("error::UserWarning", "error::RuntimeWarning", "error::DeprecationWarning")
def test_runs_in_any_state_are_shown_on_a_page(motley: list[RunDir], tmp_path: Path) -> None:
    page = parse(write_comparison(compare(motley), tmp_path / "all").read_text())
    assert (tmp_path / "all" / "loss_seeds.png").stat().st_size > 1000
    assert page.unclosed == []
    assert page.headings[0] == "5 runs compared"
    assert "result.json: cannot be read" in page.text
    assert not page.tags & {"script", "link", "iframe", "b"}


def test_comparison_without_any_readable_run_is_shown(motley: list[RunDir], tmp_path: Path) -> None:
    compared = compare([motley[-1]])
    assert comparison_plots(compared.runs) == {}
    assert "unreadable" in parse(write_comparison(compared, tmp_path / "all").read_text()).text
    console = a_terminal(80)
    show(comparison_document(compared), console)
    assert "unreadable" in console.export_text()


# ---- files


@pytest.fixture(scope="module")
def folder(runs: list[RunDir], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_comparison(compare(runs), tmp_path_factory.mktemp("out") / "new" / "all").parent


def test_comparison_folder_contains_page_plots_and_tables(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    assert names >= {"report.html", "report.md", "report.json", "loss.png", "loss_seeds.png", "timelines.png"}
    tables = {name for name in names if name.endswith(".csv")}
    assert tables == {"curves.csv", "differences.csv", "groups.csv", "runs.csv"}


@pytest.mark.slow
def test_html_target_writes_one_file(runs: list[RunDir], tmp_path: Path) -> None:
    assert write_comparison(compare(runs[:2]), tmp_path / "both.html") == tmp_path / "both.html"
    assert [path.name for path in tmp_path.iterdir()] == ["both.html"]


def test_page_has_its_sections_and_inline_pictures(folder: Path) -> None:
    page = parse((folder / "report.html").read_text())
    title, *sections = page.headings
    assert title == "4 runs compared"
    assert sections == ["Runs", "Means over seeds", "What differs", "Curves", "Scores (test)", "Costs"]
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    assert len(page.addresses) == 2 * len([*folder.glob("*.png")]), "each in light and dark"


def test_json_contains_runs_groups_and_differences(folder: Path) -> None:
    document = json.loads((folder / "report.json").read_text())
    assert [run["run_id"] for run in document["runs"]] == ["sst2-a1", "sst2-a2", "sst2-a3", "sst2-b1"]
    first = document["groups"][0]
    assert (first["seeds"], first["finished"]) == ([1, 2, 3], ["sst2-a1", "sst2-a2"])
    assert first["scores"]["accuracy"]["runs"] == 2
    assert document["differences"]["optimizer.lr"]["sst2-b1"] == 0.01


def test_csv_files_have_a_row_for_each_run_setting_and_point(folder: Path) -> None:
    head, *rows = table((folder / "runs.csv").read_text())
    assert [row[head.index("seed")] for row in rows] == ["1", "2", "3", "1"]
    assert rows[0][head.index("test_accuracy")] == "0.7999999999999999"
    head, *rows = table((folder / "groups.csv").read_text())
    assert ["lr=0.01", "test", "accuracy", "0.5", "", "1"] in rows
    head, *rows = table((folder / "curves.csv").read_text())
    assert ["sst2-a1", "validation", "loss", "200", "0.4"] in rows


# ---- plots


def test_mean_curves_ignore_unfinished_runs(tmp_path: Path) -> None:
    """A run in its first epoch must not shorten the mean curves."""
    runs = [with_seed(write_finished(tmp_path / f"run-{number}"), number) for number in range(2)]
    young = RunDir(tmp_path / "young")
    write_config(young)
    write_metrics(young, epochs=1)
    with_young, without = (
        comparison_plots([summarize(run) for run in each])["loss_seeds.png"](DARK)
        for each in ([*runs, young], runs)
    )
    assert with_young == without
