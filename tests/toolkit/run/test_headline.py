"""The one score of a validation."""

from __future__ import annotations

from toolkit.run.records.headline import headline


def test_the_first_score_of_the_validation_is_shown():
    metrics = {"train_loss": 0.5, "validation_loss": 0.7, "validation_f1": 0.9, "validation_precision": 0.8}
    assert headline(metrics) == 0.9


def test_without_another_one_the_loss_is_shown_and_before_a_validation_nothing():
    assert headline({"train_loss": 0.5, "validation_loss": 0.7}) == 0.7
    assert headline({"train_loss": 0.5, "test_accuracy": 0.7}) is None
