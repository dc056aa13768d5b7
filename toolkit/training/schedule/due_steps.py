"""When to log, evaluate and save: pure functions of the step, the same in a resumed run."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.config.schema import Experiment
from toolkit.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSchedule:
    """The schedule of a run. `step` counts completed updates: 1 after the first one."""

    steps_per_epoch: int
    total_steps: int
    log_per_epoch: int
    eval_per_epoch: int
    eval_every: int | None = None
    save_every: int | None
    compare_every: int | None

    @classmethod
    def of(cls, experiment: Experiment, steps_per_epoch: int) -> StepSchedule:
        """The schedule of an experiment, given the steps of each epoch. Raises DataError for none."""
        if not steps_per_epoch:
            raise DataError("the training set has no samples")
        train = experiment.train
        return cls(
            steps_per_epoch=steps_per_epoch,
            total_steps=train.steps or steps_per_epoch * (train.epochs or 0),
            log_per_epoch=train.log_per_epoch,
            eval_every=train.eval_steps or (train.eval_epochs and train.eval_epochs * steps_per_epoch),
            eval_per_epoch=train.eval_per_epoch,
            save_every=experiment.checkpoint.every_steps,
            compare_every=train.check_ranks_every,
        )

    def epoch(self, step: int) -> float:
        """Epochs done after a number of steps."""
        return round(step / self.steps_per_epoch, 4)

    @property
    def epochs(self) -> int:
        """Number of epochs; the last one may be incomplete."""
        return -(-self.total_steps // self.steps_per_epoch)

    def logs_at(self, step: int) -> bool:
        return step == self.total_steps or self._is_due(step, self.log_per_epoch)

    def evaluates_at(self, step: int) -> bool:
        if step == self.total_steps:
            return True
        if self.eval_every is not None:
            return step % self.eval_every == 0
        return self._is_due(step, self.eval_per_epoch)

    def saves_at(self, step: int) -> bool:
        """Whether a save is due in addition to the one at every evaluation."""
        return self.save_every is not None and step % self.save_every == 0

    def compares_at(self, step: int, *, is_last: bool) -> bool:
        return self.compare_every is not None and (is_last or step % self.compare_every == 0)

    def _is_due(self, step: int, per_epoch: int) -> bool:
        """Whether one of `per_epoch` events, evenly spaced with the last at the end of the epoch, is due."""
        position = (step - 1) % self.steps_per_epoch + 1
        before, now = (place * per_epoch // self.steps_per_epoch for place in (position - 1, position))
        return now > before
