"""Which runs are shown, and in which order."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from slurm.client.queue import State
from slurm.status.filters import ORDERS, matches, ordered
from slurm.status.rows import RunStatus
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User
from tests.toolkit.support import a_stranger
from toolkit.run.run_dir import RunDir


def row(run_id: str, state: str = "finished", **facts: object) -> RunStatus:
    return RunStatus(**{"job_id": None, "run_id": run_id, "run_dir": "/", "state": state, **facts})


def configured(folder: Path, kind: str) -> Path:
    """A run's folder that says its task."""
    folder.mkdir()
    RunDir(folder).config.write_text(f"task:\n  kind: {kind}\n")
    return folder


SCORED = {"main_metric": "macro_f1", "main_goal": "max"}
ROWS = [
    row("b", "running", percent=10.0, main_value=0.5, updated=30.0, is_live=True, **SCORED),
    row("a", "failed", percent=90.0, main_value=0.7, updated=10.0, gpu_hours=2.0, **SCORED),
    row("c", "pending", updated=20.0, is_live=True, sweep="study-1"),
]


@pytest.mark.parametrize(
    "by, names",
    [
        ("name", "abc"),
        ("state", "bca"),
        ("progress", "abc"),
        ("metric", "abc"),
        ("age", "bca"),
        ("gpu-hours", "abc"),
    ],
)
def test_best_newest_and_furthest_runs_come_first(by: str, names: str) -> None:
    assert "".join(each.run_id for each in ordered(ROWS, by)) == names


def test_runs_without_a_value_come_last_in_reversed_order_too() -> None:
    assert [each.run_id for each in ordered(ROWS, "metric", is_reversed=True)] == ["b", "a", "c"]


def test_smallest_loss_is_best() -> None:
    rows = [row("a", main_metric="loss", main_value=2.0), row("b", main_metric="loss", main_value=1.0)]
    assert [each.run_id for each in ordered(rows, "metric")] == ["b", "a"]


@pytest.mark.parametrize(
    "kind, metric, best",
    [
        ("toy_points", "distance", "b"),
        ("toy_texts", "macro_recall", "a"),
        ("toy_texts", "accuracy/no_loss", "a"),
        (a_stranger.KIND, "accuracy", "b"),
    ],
)
def test_goal_declared_by_the_task_decides_which_run_is_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, metric: str, best: str
) -> None:
    a_stranger.install(monkeypatch)
    rows = [
        row(name, run_dir=str(configured(tmp_path / name, kind)), main_metric=metric, main_value=value)
        for name, value in (("a", 0.9), ("b", 0.1))
    ]
    assert ordered(rows, "metric")[0].run_id == best


@pytest.mark.parametrize("config", ["task: {", "- 1\n", "task: 3\n", "task: {kind: gone}\n"])
def test_run_whose_config_names_no_known_task_is_ranked_last(tmp_path: Path, config: str) -> None:
    (tmp_path / "config.yaml").write_text(config)
    rows = [
        row("a", run_dir=str(tmp_path), main_metric="accuracy", main_value=0.9),
        row("b", main_metric="accuracy", main_value=0.1, main_goal="max"),
    ]
    assert [each.run_id for each in ordered(rows, "metric")] == ["b", "a"]


def test_recorded_goal_overrides_the_declared_goal() -> None:
    rows = [
        row(name, main_metric="accuracy", main_value=value, main_goal="min")
        for name, value in (("a", 0.9), ("b", 0.1))
    ]
    assert [each.run_id for each in ordered(rows, "metric")] == ["b", "a"]


def test_run_with_an_undeclared_metric_is_ranked_last() -> None:
    rows = [row("a", main_metric="odd", main_value=0.1), row("b", main_value=0.1, **SCORED)]
    assert [each.run_id for each in ordered(rows, "metric")] == ["b", "a"]
    assert [each.run_id for each in ordered(rows[:1], "metric", is_reversed=True)] == ["a"]


def test_runs_of_every_state_can_be_sorted() -> None:
    rows = [row(state, state) for state in get_args(State)]
    assert len(ordered(rows, "state")) == len(rows)


@pytest.mark.parametrize(
    "conditions, names",
    [
        ({}, "bac"),
        ({"states": {"failed", "pending"}}, "ac"),
        ({"is_live": True}, "bc"),
        ({"since": 15.0}, "bc"),
        ({"sweep": "study-*"}, "c"),
        ({"sweep": "*"}, "c"),
        ({"is_live": True, "since": 25.0}, "b"),
        ({"since": 99.0}, "b"),
    ],
)
def test_all_conditions_must_hold(conditions: dict[str, Any], names: str) -> None:
    assert "".join(each.run_id for each in ROWS if matches(each, **conditions)) == names


# -- the command ---------------------------------------------------------------------------------


def test_the_command_filters_and_sorts(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", user.config)
    user.stk("submit", user.config, "name=other")
    fake.change("102", state="RUNNING")
    assert user.stk("status", "--state", "running").out.count("other-") == 1
    shown = user.stk("status", "--live", "--sort", "state").out
    assert shown.index("other-") < shown.index("tiny-")
    assert "none of 2 runs" in user.stk("status", "--state", "failed,held").out
    named = user.stk("status", "--name", "tiny*", "--since", "1h").out
    assert (named.count("tiny-"), named.count("other-")) == (1, 0)


@pytest.mark.parametrize("words", [["--state", "done"], ["--since", "yesterday"], ["--sort", "colour"]])
def test_invalid_filters_are_refused(user: User, words: list[str]) -> None:
    assert words[1] in user.refused("status", *words)


def test_help_names_every_order(user: User) -> None:
    assert all(order in user.stk("status", "--help").out for order in ORDERS)
