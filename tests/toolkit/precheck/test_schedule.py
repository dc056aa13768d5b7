"""Schedules longer than the run are reported as soon as its steps are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.support.tiny import of_tokens, tiny
from toolkit.config import Experiment
from toolkit.precheck.schedule import schedule_warnings
from toolkit.task import task_class

#: Two epochs of eight steps.
STEPS = 16


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    experiment = tiny(tmp_path)
    task_class(experiment).prepare(experiment)
    return tmp_path


def odd(experiment: Experiment) -> list[str]:
    return [".".join(each.key) for each in schedule_warnings(experiment)]


@pytest.mark.parametrize(
    "fits, does_not",
    [
        ("lr_scheduler.warmup=15", "lr_scheduler.warmup=16"),
        ("lr_scheduler.warmup=0.9", "lr_scheduler.warmup=5000"),
        ("lr_scheduler.warmup=0.9", "lr_scheduler.warmup=1"),
        ("checkpoint.every_steps=16", "checkpoint.every_steps=17"),
        ("train.eval_per_epoch=8", "train.eval_per_epoch=9"),
        ("train.log_per_epoch=8", "train.log_per_epoch=9"),
        ("train.log_per_epoch=20", "train.log_per_epoch=21"),  # the default suits longer epochs
    ],
)
def test_a_schedule_longer_than_the_run_is_reported_by_its_key(
    prepared: Path, fits: str, does_not: str
) -> None:
    assert odd(tiny(prepared, fits)) == []
    assert odd(tiny(prepared, does_not)) == [does_not.partition("=")[0]]


def test_the_warning_states_the_steps_of_the_run(prepared: Path) -> None:
    (found,) = schedule_warnings(tiny(prepared, "lr_scheduler.warmup=5000"))
    assert f"{STEPS} steps" in found.problem
    assert "5,000" in found.problem


def test_unknown_steps_cause_no_warning(tmp_path: Path) -> None:
    assert odd(tiny(tmp_path, "lr_scheduler.warmup=5000")) == []


def test_a_learning_rate_that_is_never_reduced_is_reported_without_the_data(tmp_path: Path) -> None:
    assert odd(tiny(tmp_path, "lr_scheduler={kind: step, step_epochs: 1}")) == []
    assert odd(tiny(tmp_path, "lr_scheduler={kind: step, step_epochs: 2}")) == ["lr_scheduler.step_epochs"]
    assert odd(tiny(tmp_path, "train.epochs=1", "lr_scheduler={kind: step, step_at: [0.5]}")) == []


def test_a_warm_up_that_is_not_linear_is_reported_without_the_data(tmp_path: Path) -> None:
    schedule = "lr_scheduler={{kind: warmup_stable_decay, arguments: {{num_decay_steps: 6{}}}}}"
    assert odd(tiny(tmp_path, schedule.format(", warmup_type: linear"))) == []
    found = odd(tiny(tmp_path, schedule.format(", warmup_type: cosine")))
    assert found == ["lr_scheduler.arguments.warmup_type"]


def test_configured_steps_are_checked_without_the_data(tmp_path: Path) -> None:
    steps = ("train.epochs=null", "train.steps=100")
    for key in ("lr_scheduler.warmup", "checkpoint.every_steps", "train.eval_steps"):
        assert odd(tiny(tmp_path, *steps, f"{key}=99")) == []
        assert odd(tiny(tmp_path, *steps, f"{key}=101")) == [key]


def test_steps_of_tokens_that_are_less_than_half_full_are_told(prepared: Path) -> None:
    """The longest text has 14 tokens, so that each step keeps room for 13 more."""
    assert odd(tiny(prepared, *of_tokens(20, None))) == ["train.batch_max_length"]
    (found,) = schedule_warnings(tiny(prepared, *of_tokens(20, None)))
    assert "found 20 beside a sample of 14 tokens: an epoch has 61 steps" in found.problem
    assert odd(tiny(prepared, *of_tokens(28, None))) == odd(tiny(prepared, *of_tokens(20, 4))) == []
