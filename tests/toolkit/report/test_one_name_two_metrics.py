"""Two tasks use one name for different metrics, and each run shows its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.report.drawn import printed
from tests.toolkit.report.report_folders import write_trained
from tests.toolkit.support import a_stranger
from toolkit.files import read_json, write_json
from toolkit.report.comparison.reading import compare
from toolkit.report.comparison.tables import best_places, runs_table
from toolkit.report.model import RunSummary, goal_of, shared_metric, shared_title
from toolkit.report.run.summary import summarize
from toolkit.report.run.tables import scores_table
from toolkit.run.run_dir import RunDir
from toolkit.sweeps.folder import Member, Record, SweepDir
from toolkit.sweeps.results.collect import read_results
from toolkit.sweeps.results.tables import told_best

KINDS = ("toy_texts", a_stranger.KIND)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[RunDir]:
    """A run of each task; neither says which metric picks the best."""
    a_stranger.install(monkeypatch)
    return [write_trained(tmp_path / kind, kind=kind, metric="accuracy") for kind in KINDS]


@pytest.fixture
def summaries(runs: list[RunDir]) -> list[RunSummary]:
    return [summarize(run) for run in runs]


def test_title_unit_and_goal_come_from_the_task_of_the_run(summaries: list[RunSummary]) -> None:
    rows = [dict(zip(("title", *each.scores), row, strict=True)) for each in summaries
            for row in scores_table(each).rows if row[0] in ("accuracy", "Miss distance")]  # fmt: skip
    assert [(row["title"], row["test"]) for row in rows] == [
        ("accuracy", "79.12 %"),
        ("Miss distance", "0.7912"),
    ]
    assert [goal_of(each.config, "accuracy") for each in summaries] == ["max", "min"]


def test_the_best_step_of_an_unfinished_run_follows_the_goal_of_its_task(runs: list[RunDir]) -> None:
    for run in runs:
        run.result.unlink()
    best = [summarize(run).best for run in runs]
    # Validation is most accurate in epoch 2; of epochs 1 and 3 the first has the least.
    assert [each and each.step for each in best] == [200, 100]


def test_compared_runs_of_two_tasks_show_their_own_units_and_no_best(runs: list[RunDir]) -> None:
    found = runs_table(compare(runs))
    column = found.head.index("test accuracy")
    assert [row[column] for row in found.rows] == ["79.12 %", "0.7912"]
    assert column not in [at for _, at in found.best]
    assert "Miss distance" not in found.head
    assert "79.12 %" in printed(runs, 160)


def test_a_metric_shared_by_all_runs_is_shown_as_declared(summaries: list[RunSummary]) -> None:
    ours, strangers = summaries
    assert shared_title([strangers, strangers], "accuracy") == "Miss distance"
    assert shared_metric([strangers, ours], "accuracy") is None
    assert shared_metric([strangers, ours], "loss") is not None
    assert best_places([strangers, strangers], "accuracy", [0.5, 0.25]) == [1]
    assert best_places([ours, ours], "accuracy", [0.5, 0.25]) == [0]


def test_a_sweep_shows_and_ranks_by_the_declaration_of_its_own_task(runs: list[RunDir]) -> None:
    for run, kind, words in zip(runs, KINDS, ("80.00 %", "0.4000"), strict=True):
        other = write_trained(run.path.with_name(f"{kind}-2"), kind=kind, metric="accuracy")
        result = read_json(other.result)
        write_json(other.result, {**result, "metrics": {"validation": {"accuracy": 0.4}}})
        members = tuple(Member(run_id=each.run_id, values={}) for each in (run, other))
        record = Record(
            name="rates", config="", method="grid", metric="validation.loss", goal="min", members=members
        )
        sweep = SweepDir(run.path.parent / "sweeps" / "rates")
        assert words in told_best(read_results(sweep, record, {}, metric="accuracy"))
