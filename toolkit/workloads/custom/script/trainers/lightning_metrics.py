"""What a Trainer of Lightning has logged, by the names of `run.log`; its steps and epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lightning.pytorch import Trainer

from toolkit.workloads.custom.script.metrics import metric_name

_VALIDATION = ("val_", "val/", "validation_", "validation/")
_TRAINING = ("train_", "train/")
_NO_SCORES = frozenset({"epoch", "step"})


def learning_rates(trainer: Trainer) -> dict[str, Any]:
    """Return what LearningRateMonitor has stored: its names begin with lr-, or with that of a scheduler."""
    names = ("lr-", *(each.name for each in trainer.lr_scheduler_configs if each.name))
    return {name: value for name, value in trainer.callback_metrics.items() if name.startswith(names)}


def loss_of(trainer: Trainer, outputs: Any) -> dict[str, Any]:
    """Return the loss of a step, as `loss`; empty if `training_step` has returned none."""
    loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
    # Lightning divides it by the number of batches of a step.
    batches = trainer.accumulate_grad_batches if trainer.lightning_module.automatic_optimization else 1
    return {} if loss is None else {"loss": loss * batches}


def of_training(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics that are neither of the validation nor of a test."""
    others = {
        name: value
        for name, value in metrics.items()
        if not name.startswith((*_VALIDATION, "test_", "test/"))
    }
    return _named(others, _TRAINING)


def of_validation(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of the validation."""
    own = {name: value for name, value in metrics.items() if name.startswith(_VALIDATION)}
    return _named(own, _VALIDATION)


def _named(metrics: Mapping[str, Any], prefixes: tuple[str, ...]) -> dict[str, Any]:
    """Return metrics by their names for `run.log`, without the prefixes."""
    found: dict[str, Any] = {}
    for name, value in metrics.items():
        if name not in _NO_SCORES:
            prefix = next((each for each in prefixes if name.startswith(each)), "")
            found[metric_name(name, prefix)] = value
    return found


def total_steps(trainer: Trainer) -> int | None:
    """Return the steps of the whole training; None if it has no end, or they cannot be estimated."""
    steps = trainer.estimated_stepping_batches
    # The Trainer estimates the number of batches, which may each make several steps.
    makes_several = not trainer.lightning_module.automatic_optimization and len(trainer.optimizers) > 1
    is_known = 0 < steps < float("inf") and (steps == trainer.max_steps or not makes_several)
    return int(steps) if is_known else None


def epoch_at(trainer: Trainer, batch_idx: int) -> float | None:
    """Return the number of finished epochs at this batch."""
    batches = trainer.num_training_batches
    return trainer.current_epoch + (batch_idx + 1) / batches if batches != float("inf") else None
