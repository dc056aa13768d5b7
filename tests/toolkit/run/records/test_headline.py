"""The score of a validation that is shown in one line."""

from __future__ import annotations

from toolkit.run.records.headline import headline, main_metric


def test_the_first_score_of_the_validation_is_shown():
    metrics = {"train_loss": 0.5, "validation_loss": 0.7, "validation_f1": 0.9, "validation_precision": 0.8}
    assert headline(metrics) == 0.9


def test_the_loss_is_shown_if_it_is_the_only_score_and_nothing_before_a_validation():
    assert headline({"train_loss": 0.5, "validation_loss": 0.7}) == 0.7
    assert headline({"train_loss": 0.5, "test_accuracy": 0.7}) is None


def test_a_score_that_is_not_finite_stays_the_main_one():
    metrics = {"validation_loss": 0.5, "validation_accuracy": None, "validation_memory": 7.0}
    assert main_metric(metrics) == ("accuracy", None)
