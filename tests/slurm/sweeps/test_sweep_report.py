"""`stk sweep report`, and the metric and goal of a sweep."""

from __future__ import annotations

import json

import pytest

from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User
from tests.slurm.sweeps.asking import ask, finish, folder
from toolkit.sweeps.folder import read_record


def test_report_names_the_best_run_and_writes_its_files(user: User, fake: FakeSlurm) -> None:
    given = ["optimizer.lr=0.1,0.2", "seed=1,2", "evaluation.metric=accuracy:max"]
    runs = ask(user, user.config, *given)["runs"]
    for line, accuracy in zip(runs, (0.5, 0.7, 0.8, 0.9), strict=True):
        finish(line, accuracy)
    told = user.stk("sweep", "report", "tiny").out
    assert (
        f"{runs[3]['run_id']}: validation.accuracy 90.00 %, the best of the sweep (4 of 4 finished)" in told
    )
    assert "85.00 % ± 7.07 %" in told
    # A run is asked for, and its name begins those of all runs of the sweep.
    assert user.stk("report", "tiny").err.rstrip().endswith("stk sweep report tiny")
    report = ask(user, "report", "tiny")
    assert report["best"]["run_id"] == runs[3]["run_id"]
    assert [group["mean"] for group in report["groups"]] == [pytest.approx(0.85), pytest.approx(0.6)]
    where = folder(user).report
    assert {path.name for path in where.iterdir()} == {
        "report.html", "report.json", "report.md", "runs.csv", "parallel.png", "scatter.png",
    }  # fmt: skip
    assert ask(user, "report", "tiny", "--metric", "loss")["best"]["run_id"] == runs[3]["run_id"]
    upside_down = user.stk("sweep", "report", "tiny", "--metric", "loss", "--goal", "max", "--json")
    assert json.loads(upside_down.out)["best"]["run_id"] == runs[0]["run_id"]
    assert "less validation.loss is better" in upside_down.err


def test_a_sweep_over_seeds_alone_shows_their_mean(user: User, fake: FakeSlurm) -> None:
    for line, accuracy in zip(ask(user, user.config, "seed=1,2")["runs"], (0.8, 0.9), strict=True):
        finish(line, accuracy)
    assert "0.1500 ± 0.0707" in user.stk("sweep", "report", "tiny").out
    assert "0.1500 ± 0.0707" in (folder(user).report / "report.md").read_text()


def test_the_declared_goal_is_recorded_whatever_the_metric_is_called(user: User, fake: FakeSlurm) -> None:
    """The name `macro_f1` says nothing about its goal, and `evaluation.metric` names a loss."""
    ask(user, user.config, "seed=1,2", "--metric", "test.macro_f1")
    record = json.loads(folder(user).record.read_text())
    assert (record["metric"], record["goal"], record["task"]) == ("test.macro_f1", "max", "toy_texts")
    answer = ask(user, user.config, "seed=1,2", "--metric", "accuracy/rate")
    assert json.loads(folder(user).record.read_text())["goal"] == "max", answer
    ask(user, user.config, "seed=1,2", "--metric", "accuracy:max")
    assert read_record(folder(user)).metric == "validation.accuracy"


@pytest.mark.parametrize("arguments, words", [
    (["--metric", "loss", "--goal", "max"], ["validation.loss", "less is better"]),
    (["--metric", "loss:max"], ["validation.loss", "less is better"]),
    (["--metric", "test.surprise"], ["test.surprise", "--goal"]),
])  # fmt: skip
def test_a_contradicting_or_undeclared_goal_is_refused_before_submission(
    user: User, fake: FakeSlurm, arguments: list[str], words: list[str]
) -> None:
    said = user.refused("sweep", user.config, "seed=1,2", *arguments)
    assert all(word in said for word in words)
    assert fake.calls("sbatch") == []


def test_a_report_by_a_metric_that_nothing_declares_asks_for_the_goal(user: User, fake: FakeSlurm) -> None:
    for line, accuracy in zip(ask(user, user.config, "seed=1,2")["runs"], (0.5, 0.7), strict=True):
        finish(line, accuracy, metrics={"validation": {"surprise": accuracy}})
    assert "--goal" in user.refused("sweep", "report", "tiny", "--metric", "surprise")
    best = ask(user, "report", "tiny", "--metric", "surprise", "--goal", "min")["best"]
    assert best["value"] == 0.5
