"""`stk.lightning`: a callback that makes a Trainer of Lightning part of the run."""

from __future__ import annotations

import functools
import inspect
import logging
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from torch.nn.parameter import is_lazy
from torch.serialization import get_unsafe_globals_in_checkpoint

from toolkit.errors import UserError
from toolkit.files import read_json, write_json
from toolkit.workloads.custom.script.current_run import current_run
from toolkit.workloads.custom.script.metrics import whole
from toolkit.workloads.custom.script.ranks import largest
from toolkit.workloads.custom.script.resuming import begin_once
from toolkit.workloads.custom.script.trainers.lightning_metrics import (
    epoch_at,
    learning_rates,
    loss_of,
    of_training,
    of_validation,
    total_steps,
)
from toolkit.workloads.custom.script.trainers.random_state import RandomState, as_json, random_state, restore

__all__ = ["RunCallback"]

_STATE = "lightning.ckpt"
#: Steps between two lines of metrics, if the Trainer has no log_every_n_steps.
_LOG_EVERY = 50
#: How many of the smallest parameters, and of the numbers of each, show whether the model has other weights.
_WATCHED, _NUMBERS = 8, 1024
#: An attribute of the method `fit` that resumes.
_OURS = "resumes_run"

log = logging.getLogger("toolkit")


class RunCallback(Callback):  # type: ignore[misc, unused-ignore]
    """Make a Trainer part of the run: `Trainer(…, callbacks=[stk.lightning.RunCallback()])`.

    - `trainer.fit(model)` continues from the newest valid checkpoint, random numbers included. It then
      ignores ckpt_path.
    - It saves a checkpoint with checksums at the end of each epoch, and every `every_n_steps` steps.
    - When the run is asked to stop, it saves after the step, or in a validation the state after the last
      step, and the process leaves with status 75. If a callback has put other weights into the model for the
      validation, such as averaged ones, it leaves after the next step.
    - The other callbacks are called before it, so that it saves what they have updated.
    - `stk status`, `watch` and `report` show what the module logs; names that begin with `val_`, `val/`,
      `validation_` or `validation/` are of the validation set.

    every_n_steps   steps between two checkpoints within an epoch; None: none
    every_n_epochs  epochs between two checkpoints at the end of one
    keep            how many of the newest checkpoints are kept

    `fit` raises stk.UserError if the Trainer wants more processes than were started, and at the second
    training of a run.
    """

    def __init__(self, *, every_n_steps: int | None = None, every_n_epochs: int = 1, keep: int = 2) -> None:
        _resume_all()
        self._run = current_run()
        self._run.catch_signals()
        self._every_n_steps, self._every_n_epochs = every_n_steps, every_n_epochs
        self._keep = whole(f"RunCallback(keep={keep!r})", keep, least=1)
        self._step = 0
        self._total: int | None = None
        self._epoch: float | None = None
        # Lightning's names of the metrics of single steps, and the values of others that were written.
        self._of_steps: set[str] = set()
        self._written: dict[str, Any] = {}
        self._has_epoch = self._has_loss = False
        self._random: dict[str, Any] | None = None
        # The state after the last step, for a save in a validation: progress, and random numbers.
        self._progress: dict[str, Any] = {}
        self._drawn: RandomState | None = None
        self._watched: list[torch.Tensor] = []
        self._weights: list[torch.Tensor] = []
        # Whether to look if Lightning can load the next checkpoint.
        self._is_doubtful = False
        self._is_at_step = self._may_leave = self._is_validating = False

    # -- resuming

    def newest(self, trainer: Trainer) -> str | None:
        """Return the file that `fit` resumes from; None without one. Collective.

        Raises UserError if the number of processes is wrong, and at the second training.
        """
        if trainer.world_size != self._run.world_size:
            raise UserError(
                f"the Trainer wants {trainer.world_size} processes, and {self._run.world_size} were started: "
                f"`stk run --procs {trainer.world_size} -- python …` starts all of them"
            )
        begin_once(self._run._place, "trainer.fit")
        folder = self._run.latest_checkpoint()
        if folder is None:
            return None
        # Lightning does not save the states of random numbers.
        self._random = read_json(_random_file(folder, trainer))
        return str(folder / _STATE)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        loop: Any = trainer.fit_loop
        # Lightning calls EarlyStopping, ModelCheckpoint and ReduceLROnPlateau after all hooks of callbacks.
        loop.on_advance_end = functools.partial(self._end_epoch, trainer, loop.on_advance_end)
        # The state at the end of the epoch determines how the next epoch is shuffled.
        if self._random is not None:
            restore(self._random)
            # Lightning does not save that EarlyStopping has ended the training.
            trainer.should_stop = trainer.should_stop or self._random.get("should_stop", False)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        # Lightning's own handler would make the ranks communicate in the middle of a step, and end the
        # process with status 0, as if it had finished.
        trainer._signal_connector.register_signal_handlers = lambda: None
        self._move(trainer, last=True)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._step = trainer.global_step
        self._total = total_steps(trainer)
        self._watched = _watched(trainer)
        loop: Any = trainer.fit_loop
        total = loop.epoch_progress.total
        is_ended = not loop.epoch_loop.restarted_on_train_batch_end and total.processed == total.ready
        if self._random is not None and loop.restarting and is_ended:
            # With max_steps, Lightning would end the last epoch once more.
            loop._restarting = loop.epoch_loop.restarting = False
            if loop.restarted_on_epoch_end:
                # An older version saved it before its end.
                loop.epoch_progress.increment_completed()
                loop.reset_restart_stage()
        if self._resumes_within_epoch:
            self._move(trainer, last=False)

    def on_train_batch_start(self, trainer: Trainer, *_: Any, **__: Any) -> None:
        # When resuming within an epoch, reading the samples has drawn random numbers again.
        if self._random is not None and self._resumes_within_epoch:
            restore(self._random)
            self._move(trainer, last=True)
        self._random = None

    @property
    def _resumes_within_epoch(self) -> bool:
        return self._random is not None and not self._random["is_epoch_end"]

    def _move(self, trainer: Trainer, *, last: bool) -> None:
        """Let Lightning call this callback after all others, which it saves, or before them.

        Other callbacks may draw random numbers at the start of a batch, after this one has restored them.
        """
        called: Any = trainer
        others = [each for each in called.callbacks if each is not self]
        called.callbacks = [*others, self] if last else [self, *others]

    # -- each step

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        step = trainer.global_step
        # With gradient accumulation, most batches make no step.
        self._is_at_step = step != self._step
        if not self._is_at_step:
            return
        before, self._step = self._step, step
        self._epoch = epoch_at(trainer, batch_idx)
        # callback_metrics also has values of earlier steps and epochs.
        logged, loss = trainer._logger_connector.metrics["callback"], loss_of(trainer, outputs)
        self._of_steps.update(logged)
        self._has_epoch, self._has_loss = True, bool(loss)
        is_due = _is_due(step, before, getattr(trainer, "log_every_n_steps", _LOG_EVERY))
        metrics = loss | of_training({**learning_rates(trainer), **logged}) if is_due else {}
        self._run.log(step=step, total=self._total, epoch=self._epoch, **metrics)
        is_asked = self._run.should_stop()
        if is_asked or _is_due(step, before, self._every_n_steps):
            self._save(trainer, is_epoch_end=trainer.is_last_batch)
        if is_asked:
            self._run.leave()
        self._progress = trainer.fit_loop.epoch_loop.state_dict(prefix="epoch_loop.")
        self._drawn = random_state()
        self._weights = [_first_numbers(each).clone() for each in self._watched]

    def _end_epoch(self, trainer: Trainer, end: Callable[[], None]) -> None:
        end()
        if self not in trainer.callbacks:
            # Lightning's search of a learning rate or batch size trains without the callbacks.
            return
        self._log_epoch(trainer)
        # At the end of the training, callbacks may put averaged weights into the model.
        if trainer.current_epoch % self._every_n_epochs == 0 or _is_last_epoch(trainer):
            self._save(trainer, is_epoch_end=True, should_stop=bool(trainer.should_stop))

    # -- evaluation

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if _is_in_training(trainer):
            # Ranks with different numbers of batches cannot agree to leave.
            batches = float(sum(trainer.num_val_batches))
            lowest, highest = largest(-batches, batches)
            is_equal = trainer.world_size == 1 or -lowest == highest < float("inf")
            self._may_leave = self._is_at_step and is_equal

    def on_validation_batch_end(self, trainer: Trainer, *_: Any, **__: Any) -> None:
        if not _is_in_training(trainer):
            self._run._leave_if_asked()
        elif self._may_leave and self._run._should_stop_evaluating() and not self._has_other_weights():
            self._is_validating = True
            self._save(trainer, is_epoch_end=trainer.is_last_batch)
            self._run.leave()

    def on_test_batch_end(self, trainer: Trainer, *_: Any, **__: Any) -> None:
        self._run._leave_if_asked()

    on_predict_batch_end = on_test_batch_end

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        if self._is_validating:
            # Lightning would resume within the validation, without the scores of the batches before.
            checkpoint["loops"]["fit_loop"].update(self._progress)

    def _has_other_weights(self) -> bool:
        """Whether the model has other weights than after the last step, such as averaged ones. Collective."""
        pairs = zip(map(_first_numbers, self._watched), self._weights, strict=True)
        return largest(float(not all(torch.equal(now, then) for now, then in pairs)))[0] > 0

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not _is_in_training(trainer):
            return
        metrics = of_validation(trainer.callback_metrics)
        if metrics:
            epoch = float(trainer.current_epoch + 1) if trainer.is_last_batch else None
            self._run.log(step=trainer.global_step, split="validation", epoch=epoch, **metrics)

    def _log_epoch(self, trainer: Trainer) -> None:
        """Log what is not of single steps, such as the means over the epoch that has ended."""
        if not self._has_epoch:
            return
        self._has_epoch = False
        excluded, logged = self._of_steps.union(learning_rates(trainer)), trainer.callback_metrics
        # Lightning keeps all values, also those of earlier epochs.
        new = {name: logged[name] for name in logged if not _is_same(logged[name], self._written.get(name))}
        self._written.update(new)
        metrics = of_training({name: new[name] for name in new if name not in excluded})
        if "loss" in metrics and self._has_loss:
            # The last step has a loss of its own.
            metrics["loss_epoch"] = metrics.pop("loss")
        if metrics:
            self._run.log(step=self._step, epoch=self._epoch, **metrics)

    def _save(self, trainer: Trainer, *, is_epoch_end: bool, should_stop: bool = False) -> None:
        drawn = self._drawn if self._is_validating and self._drawn else random_state()
        facts = {"is_epoch_end": is_epoch_end, "should_stop": should_stop}
        with self._run.checkpoint(trainer.global_step, keep=self._keep) as folder:
            write_json(_random_file(folder, trainer), {**facts, **as_json(drawn)})
            trainer.save_checkpoint(folder / _STATE)
            # AsyncCheckpointIO writes in a thread. It starts a new one at its next save.
            trainer.strategy.checkpoint_io.teardown()
            if self._is_doubtful and trainer.is_global_zero:
                _warn_of_objects(folder / _STATE)
            self._is_doubtful = False


def _is_same(value: Any, other: Any) -> bool:
    """Whether this is the same value, not one that is equal. Lightning detaches a tensor at each look."""
    is_tensor = isinstance(value, torch.Tensor) and isinstance(other, torch.Tensor)
    return bool(value.data_ptr() == other.data_ptr()) if is_tensor else value is other


def _warn_of_objects(checkpoint: Path) -> None:
    """Warn if Lightning would not load a checkpoint by default."""
    # It may be a folder, or have another format.
    with suppress(Exception):
        if objects := get_unsafe_globals_in_checkpoint(checkpoint):
            log.warning(
                "Lightning will not resume from its checkpoints, because they have %s: leave it out, as with "
                "save_hyperparameters(ignore=[…]), or use trainer.fit(…, weights_only=False)",
                ", ".join(sorted(objects)),
            )


def _watched(trainer: Trainer) -> list[torch.Tensor]:
    """Return a few trained parameters, which show whether other weights are in the model."""
    # A module's own hook may change the weights after the callback has seen them, so nothing is compared.
    hook = trainer.lightning_module.on_train_batch_end
    if getattr(hook, "__qualname__", "") != "ModelHooks.on_train_batch_end":
        return []
    groups = (group for optimizer in trainer.optimizers for group in optimizer.param_groups)
    parameters = (each for group in groups for each in group["params"])
    trained = dict.fromkeys(each for each in parameters if not is_lazy(each))
    return sorted(filter(torch.numel, trained), key=torch.numel)[:_WATCHED]


def _first_numbers(parameter: torch.Tensor) -> torch.Tensor:
    return parameter.detach().flatten()[:_NUMBERS]


def _is_last_epoch(trainer: Trainer) -> bool:
    """Whether the training ends with the epoch that has ended."""
    is_end = 0 < (trainer.max_epochs or -1) <= trainer.current_epoch
    return bool(trainer.should_stop or is_end or 0 < trainer.max_steps <= trainer.global_step)


def _is_due(step: int, before: int, every: int | None) -> bool:
    """Whether a multiple of `every` steps is done since `before`. Several optimizers make several at once."""
    return bool(every and step // every > before // every)


def _is_in_training(trainer: Trainer) -> bool:
    """Whether a validation belongs to a training that has begun."""
    return trainer.state.fn == "fit" and not trainer.sanity_checking


def _random_file(folder: Path, trainer: Trainer) -> Path:
    return folder / f"random_{trainer.global_rank:05d}.json"


def _resume_all() -> None:
    """Let all loaded Trainers resume: `pytorch_lightning` has one of its own.

    A callback is called too late to choose the checkpoint that a Trainer starts from.
    """
    for name in ("lightning.pytorch", "pytorch_lightning"):
        trainer = getattr(sys.modules.get(name), "Trainer", None)
        if trainer is not None and not hasattr(trainer.fit, _OURS):
            trainer.fit = _resuming(trainer.fit)


def _resuming(fit: Callable[..., Any]) -> Callable[..., Any]:
    """`Trainer.fit` that continues automatically if the trainer has a RunCallback."""
    signature = inspect.signature(fit)

    @functools.wraps(fit)
    def wrapped(self: Trainer, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs)
        callbacks: Iterable[Any] = self.callbacks  # type: ignore[attr-defined, unused-ignore]
        ours = next((each for each in callbacks if isinstance(each, RunCallback)), None)
        if ours is not None:
            # Lightning before 2.6 has no such argument, and loads all objects.
            ours._is_doubtful = (
                "weights_only" in signature.parameters
                and given.arguments.get("weights_only") is not False
                and not os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
            )
            if (newest := ours.newest(self)) is not None:
                given.arguments["ckpt_path"] = newest
        return fit(*given.args, **given.kwargs)

    setattr(wrapped, _OURS, True)
    return wrapped
