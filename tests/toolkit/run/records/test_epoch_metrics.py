from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.run.records.epoch_metrics import by_epoch, trained


def line(split: str, step: int, epoch: float, **metrics: Any) -> dict[str, Any]:
    return {"time": 1.0, "split": split, "step": step, "epoch": epoch, **metrics}


def test_training_metrics_are_averaged_and_the_last_validation_is_taken() -> None:
    first, second = by_epoch(
        [
            line("train", 10, 0.5, loss=1.0, accuracy=0.5),
            line("validation", 10, 0.5, loss=0.9, accuracy=0.4),
            line("train", 20, 1.0, loss=0.6, accuracy=0.7),
            line("validation", 20, 1.0, loss=0.8),
            line("train", 40, 2.0, loss=0.2),
            line("test", 40, 2.0, loss=0.1),
        ]
    )
    assert (first.epoch, second.epoch) == (1, 2)
    assert first.training == {"loss": pytest.approx(0.8), "accuracy": pytest.approx(0.6)}
    assert first.validation == {"loss": 0.8, "accuracy": 0.4}
    assert (second.training, second.validation) == ({"loss": 0.2}, {})


def test_lines_are_weighted_by_their_sample_count() -> None:
    """Two steps of 32 samples, then one of 8: the whole is 72 samples, 40 of them right."""
    (epoch,) = by_epoch(
        [
            line("train", 2, 0.6667, loss=0.9, accuracy=0.5, count=64),
            line("train", 3, 1.0, loss=0.1, accuracy=1.0, count=8),
        ]
    )
    assert epoch.training == {
        "loss": pytest.approx((0.9 * 64 + 0.1 * 8) / 72),
        "accuracy": pytest.approx(40 / 72),
    }


def test_lines_are_weighted_by_steps_if_any_has_no_sample_count() -> None:
    """A step with loss 1, then 3 with loss 0."""
    lines = [line("train", 1, 0.25, loss=1.0), line("train", 4, 1.0, loss=0.0, count=1000)]
    assert by_epoch(lines)[0].training["loss"] == 0.25


def test_the_mean_of_a_speed_is_weighted_by_time() -> None:
    """100 samples in 10 s, then 300 in 1 s. The second line has no tokens_per_s."""
    (epoch,) = by_epoch(
        [
            line("train", 1, 0.5, count=100, samples_per_s=10.0, tokens_per_s=50.0),
            line("train", 2, 1.0, count=300, samples_per_s=300.0),
        ]
    )
    assert epoch.training == {"samples_per_s": pytest.approx(400 / 11), "tokens_per_s": pytest.approx(50.0)}


@pytest.mark.parametrize(
    "rates, mean", [([0.0, 0.0], 0.0), ([0.0, 10.0], 10.0), ([-1.0, 1.0], 0.0), ([None, 1.0], math.nan)]
)
def test_a_speed_from_which_no_time_follows_is_no_error(rates: list[float | None], mean: float) -> None:
    lines = (line("train", step, step / 2, words_per_s=rate) for step, rate in enumerate(rates, start=1))
    (epoch,) = by_epoch(lines)
    assert epoch.training == pytest.approx({"words_per_s": mean}, nan_ok=True)


def test_the_trained_epoch_is_the_last_whole_one() -> None:
    epochs = by_epoch(line("train", step, step / 2, loss=1 / step) for step in range(1, 6))
    found = [trained(epochs, done) for done in (0.5, 1.0, 2.5, 3.0)]
    assert [epoch and epoch.epoch for epoch in found] == [1, 1, 2, 3]
    assert trained((), 0.0) is None


def test_lines_of_one_step_are_joined_and_the_later_value_counts() -> None:
    """As of a script that scores several sets; the second line need not know the epoch."""
    second = {"split": "validation", "step": 10, "epoch": None, "b_loss": 3.0, "accuracy": 0.5}
    (epoch,) = by_epoch([line("validation", 10, 1.0, a_loss=2.0, accuracy=0.1), second])
    assert epoch.validation == {"a_loss": 2.0, "b_loss": 3.0, "accuracy": 0.5}


def test_a_rounding_error_at_the_end_of_an_epoch_starts_no_new_epoch() -> None:
    assert [epoch.epoch for epoch in by_epoch([line("train", 3, 3 * 0.1 / 0.3, loss=1.0)])] == [1]
    assert [epoch.epoch for epoch in by_epoch([line("train", 3, 1.0000000002, loss=1.0)])] == [1]


def test_a_mean_of_values_that_are_not_all_finite_is_unknown() -> None:
    begin = line("train", 0, 0.0, lr=None)
    whole = line("train", 1, 0.5, loss=0.3, accuracy=0.9, lr=0.1, note="x")
    (epoch,) = by_epoch([begin, whole, line("train", 2, 1.0, loss=None, accuracy=math.nan, note="y")])
    assert epoch.training == pytest.approx({"loss": math.nan, "accuracy": math.nan, "lr": 0.1}, nan_ok=True)


def test_no_usable_lines_give_no_epochs() -> None:
    assert by_epoch([]) == ()
    assert by_epoch([{"split": "train", "step": 1}]) == ()


@given(st.lists(st.floats(0, 10), min_size=1, max_size=20))
def test_every_mean_is_between_the_values_of_its_lines(losses: list[float]) -> None:
    (epoch,) = by_epoch(line("train", 1 + step, 0.5, loss=loss) for step, loss in enumerate(losses))
    assert min(losses) - 1e-9 <= epoch.training["loss"] <= max(losses) + 1e-9
