"""The results of the runs of a sweep, and how they are shown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from toolkit.errors import UserError
from toolkit.report.formats import short_names
from toolkit.sweeps.folder import Member, Record, SweepDir
from toolkit.sweeps.results.axes import axis
from toolkit.sweeps.results.collect import Results, read_results, to_json
from toolkit.sweeps.results.report import write_report
from toolkit.sweeps.results.tables import terminal_table, told_best


def results(
    folder: Path,
    scores: dict[str, object],
    *,
    goal: str = "max",
    key: str = "lr",
    metric: str | None = None,
    config: str = "/mine.yaml",
    more: Sequence[dict[str, str]] | None = None,
) -> Results:
    """The results of runs with these values; a text stands for a file of just that.

    more  values of other keys, for each run
    """
    sweep = SweepDir(folder / "sweeps" / "mine")
    members = []
    for number, (value, score) in enumerate(scores.items()):
        run = sweep.run(f"run-{number}")
        run.path.mkdir(parents=True)
        members.append(Member(run_id=run.run_id, values={key: value, **(more[number] if more else {})}))
        known = {"step": 4, "seconds": 60.0, "metrics": {"validation": {"accuracy": score}}}
        if score is not None:
            run.result.write_text(score if isinstance(score, str) else json.dumps(known))
    record = Record(
        name="mine",
        config=config,
        method="grid",
        metric="validation.accuracy",
        goal=goal,
        members=tuple(members),
    )
    states = {each.run_id: "pending" for each in members}
    return read_results(sweep, record, states, metric=metric, goal=goal)


def test_runs_are_ranked_and_those_without_a_value_come_last(tmp_path: Path) -> None:
    found = results(
        tmp_path, {"1": 0.5, "2": 0.9, "3": None, "4": '{"state": "fin', "5": "[]", "6": float("nan")}
    )
    assert [(row.values["lr"], row.value, row.state) for row in found.rows] == [
        ("2", 0.9, "finished"),
        ("1", 0.5, "finished"),
        ("3", None, "pending"),
        ("4", None, "result.json is damaged"),
        ("5", None, "result.json is damaged"),
        ("6", None, "finished"),
    ]
    assert results(tmp_path / "again", {"1": 0.5, "2": 0.9}, goal="min").best.values == {"lr": "1"}


def run_with(accuracy: float, loss: object) -> str:
    """A result.json, in which the losses of the splits are in opposite order."""
    other = -loss if isinstance(loss, float) else 0.0
    metrics = {"validation": {"accuracy": accuracy, "loss": loss}, "test": {"accuracy": 0.5, "loss": other}}
    return json.dumps({"step": 4, "metrics": metrics})


@pytest.mark.parametrize("metric, best", [("accuracy", "3"), ("test.accuracy", "2")])
@pytest.mark.parametrize("goal", ["max", "min"])
def test_of_runs_with_equal_scores_the_one_with_the_lower_loss_is_the_best(
    tmp_path: Path, metric: str, best: str, goal: str
) -> None:
    runs = {"1": run_with(0.9, None), "2": run_with(0.9, 0.7), "3": run_with(0.9, 0.3)}
    found = results(tmp_path, runs, metric=metric, goal=goal)
    assert found.best is not None
    assert found.best.values == {"lr": best}


def test_of_groups_with_equal_means_the_one_with_the_lower_mean_loss_is_the_best(tmp_path: Path) -> None:
    runs = {str(seed): run_with(0.9, loss) for seed, loss in enumerate((0.1, 0.9, 0.3, 0.4))}
    found = results(tmp_path, runs, key="seed", more=[{"lr": each} for each in "0011"])
    assert [group.values["lr"] for group in found.groups] == ["1", "0"]
    assert found.best is not None
    assert found.best.run_id == "run-0"


@pytest.mark.parametrize("metric, step", [("accuracy", 3), ("train.loss", 4)])
def test_the_step_of_a_score_is_the_step_of_its_weights(tmp_path: Path, metric: str, step: int) -> None:
    metrics = {"validation": {"accuracy": 0.5}, "train": {"loss": 1.0}}
    known = json.dumps({"step": 4, "best": {"step": 3}, "metrics": metrics})
    (row,) = results(tmp_path, {"1": known}, metric=metric).rows
    assert (row.value is not None, row.step) == (True, step)


@pytest.mark.parametrize(
    "metric, step", [("loss", "2"), ("accuracy", "4"), ("test.loss", "4"), ("train.loss", "4")]
)
def test_only_scores_that_were_logged_with_a_marked_checkpoint_have_its_step(
    tmp_path: Path, metric: str, step: str
) -> None:
    metrics = {"validation": {"loss": 0.5, "accuracy": 0.5}, "test": {"loss": 1.0}, "train": {"loss": 1.0}}
    marked = {"step": 2, "validation": ["loss"]}
    known = json.dumps({"step": 4, "best": {}, "best_checkpoint": marked, "metrics": metrics})
    found = results(tmp_path, {"1": known}, metric=metric)
    write_report(SweepDir(tmp_path / "sweeps" / "mine"), found)
    (row,) = csv.DictReader(io.StringIO((tmp_path / "sweeps/mine/report/runs.csv").read_text()))
    assert row["step"] == step


def test_finished_runs_with_nan_scores_have_no_best(tmp_path: Path) -> None:
    """Such a score is null in result.json."""
    found = results(tmp_path, {"1": float("nan"), "2": float("nan")})
    assert found.best is None
    assert "validation.accuracy" in told_best(found)
    assert "validation.accuracy" not in told_best(results(tmp_path / "again", {"1": None}))


def test_finished_runs_without_the_metric_count_as_finished(tmp_path: Path) -> None:
    found = results(tmp_path, {"1": 0.5, "2": '{"metrics": {}}', "3": None})
    assert found.finished == "2 of 3 finished, 1 with validation.accuracy"
    assert found.finished in told_best(found)
    assert results(tmp_path / "again", {"1": 0.5, "3": None}).finished == "1 of 2 finished"


def test_runs_with_other_metrics_than_the_sweep_are_not_ranked(tmp_path: Path) -> None:
    """As those of a script that logs the loss of training alone. A metric that is given is refused."""
    known = json.dumps({"step": 4, "metrics": {"train": {"loss": 1.0, "\x1b[31m": 2.0}}})
    found = results(tmp_path, {"1": known, "2": known, "3": None})
    assert (found.best, found.finished) == (None, "2 of 3 finished, 0 with validation.accuracy")
    page = write_report(SweepDir(tmp_path / "sweeps" / "mine"), found).read_text()
    for text in (told_best(found), page):
        assert "train.loss" in text
        assert "--metric" in text
        assert "\x1b" not in text
    assert {"lacking", "declared"}.isdisjoint(to_json(found))
    with pytest.raises(UserError, match=r"train\.loss.*--metric"):
        results(tmp_path / "again", {"1": known}, metric="f1", goal="max")


def test_a_sweep_without_an_experiment_file_names_none(tmp_path: Path) -> None:
    found = results(tmp_path, {"1": 0.5}, config=str(tmp_path / "<train 289de897>.yaml"))
    assert to_json(found)["config"] is None
    sweep = SweepDir(tmp_path / "sweeps" / "mine")
    assert "made from" not in write_report(sweep, found).read_text()
    assert "mine.yaml" in write_report(sweep, results(tmp_path / "again", {"1": 0.5})).read_text()


def test_values_with_markup_and_formulas_are_escaped(tmp_path: Path) -> None:
    hostile = "<script>|\x1b[31m$x^{"
    found = results(tmp_path, {hostile: 0.5, "=1+1": 0.7, "null": 0.7}, key="a.<b>|[red]")
    sweep = SweepDir(tmp_path / "sweeps" / "mine")
    page = write_report(sweep, found).read_text()
    markdown, table = ((sweep.report / name).read_text() for name in ("report.md", "runs.csv"))
    assert "<script>" not in page
    assert "\x1b" not in page + markdown + table
    rows = list(csv.reader(io.StringIO(table)))
    assert [row[2] for row in rows[1:]] == ["'=1+1", "null", hostile.replace("\x1b", "\u241b")]
    assert "|  | a.\\<b\\>\\|\\[red\\] |" in markdown


def test_values_are_parsed_in_json_and_plain_in_csv(tmp_path: Path) -> None:
    found = results(tmp_path, {"0.1": 0.9, '"a b"': 0.8, "[1, b]": 0.7, "true": 0.6, ".nan": 0.5, "{": 0.4})
    document = json.loads(json.dumps(to_json(found), allow_nan=False))
    assert [row["values"]["lr"] for row in document["rows"]] == [0.1, "a b", [1, "b"], True, ".nan", "{"]
    assert document["best"]["values"] == {"lr": 0.1}
    write_report(SweepDir(tmp_path / "sweeps" / "mine"), found)
    rows = list(csv.reader(io.StringIO((tmp_path / "sweeps/mine/report/runs.csv").read_text())))
    assert [row[2] for row in rows[1:]] == ["0.1", "a b", "[1, b]", "true", ".nan", "{"]


@pytest.mark.parametrize("scores", [{}, {"1": None}, {"1": 0.5}, {"1": 0.5, "2": 0.5}])
def test_a_report_of_few_or_no_scores_is_written(tmp_path: Path, scores: dict[str, object]) -> None:
    found = results(tmp_path, scores)
    assert write_report(SweepDir(tmp_path / "sweeps" / "mine"), found).exists()


def test_an_axis_over_a_wide_range_is_logarithmic() -> None:
    assert axis("lr", ["0.1", "0.001", "0.01"]).is_log
    assert not axis("lr", ["0.1", "0.2"]).is_log
    assert not axis("lr", ["0.0001", "0.5"], is_log=False).is_log
    assert not axis("lr", ["0", "1000"], is_log=True).is_log
    wide = axis("lr", ["0.1", "0.001", "0.01"])
    assert [wide.share(place) for place in (0.001, 0.01, 0.1)] == [
        pytest.approx(each) for each in (0, 0.5, 1)
    ]


def test_tiny_numbers_have_places_of_their_own_on_an_axis() -> None:
    tiny = axis("lr", [f"{number}e-13" for number in range(1, 9)])
    labels = [label for _, label in tiny.ticks]
    assert labels == ["0", "2e-13", "4e-13", "6e-13", "8e-13"]


def test_names_are_evenly_spaced_on_an_axis() -> None:
    named = axis("kernels", ["[2, 3]", "[2]", None, "[2]"])
    assert named.is_named
    assert named.places == (1.0, 0.0, None, 0.0)
    assert named.ticks == ((0.0, "[2]"), (1.0, "[2, 3]"))


def test_keys_are_shortened_to_their_last_part_if_it_is_unique() -> None:
    assert list(short_names(["optimizer.lr", "model.kind", "task.kind"]).values()) == [
        "lr", "model.kind", "task.kind",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [40, 60, 200])
def test_a_narrow_terminal_cuts_values_but_not_run_ids(width: int) -> None:
    from rich.console import Console

    shown = io.StringIO()
    console = Console(width=width, file=shown)
    rows = [["0.000123456789", "[2,3,4,5,6,7]", "quickstart-0123abcd"]]
    console.print(terminal_table(["a.lr", "kernels", "run"], ["a.lr", "kernels"], rows))
    lines = shown.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[1].rstrip().endswith("quickstart-0123abcd")
