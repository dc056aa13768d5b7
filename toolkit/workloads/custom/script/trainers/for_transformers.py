"""`stk.transformers`: a callback that makes a Trainer of transformers part of the run."""

from __future__ import annotations

import functools
import math
import shutil
from collections.abc import Callable, Iterable, Mapping, Sized
from pathlib import Path
from typing import Any

from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from toolkit.errors import UserError
from toolkit.files import link_or_copy
from toolkit.workloads.custom.script.current_run import current_run
from toolkit.workloads.custom.script.metrics import metric_name, whole
from toolkit.workloads.custom.script.resuming import begin_once

__all__ = ["RunCallback"]

#: Evaluations' splits, by the prefix of their metrics.
_SPLITS = {"eval_": "validation", "test_": "test"}
#: Keys that the Trainer adds to its logs, behind the prefix of the evaluation.
_NO_SCORES = frozenset(
    {"runtime", "samples_per_second", "steps_per_second", "model_preparation_time", "train_runtime"}
)
_SPEED = "samples_per_second"
#: A key of the summary that the Trainer logs at the end. With include_num_input_tokens_seen, each log has
#: train_runtime.
_SUMMARY = "total_flos"


class RunCallback(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Make a Trainer part of the run: `Trainer(…, callbacks=[stk.transformers.RunCallback()])`.

    - `trainer.train()` continues from the newest valid checkpoint and ignores a path in
      resume_from_checkpoint; only False makes it start from the beginning.
    - Each checkpoint of the Trainer, by its save_strategy, is also kept in the run, with checksums.
    - When the run is asked to stop, the Trainer saves after its step, or in an evaluation the state after
      the last step, and the process leaves with status 75. In an evaluation after the training it
      saves too, also with save_strategy="no". It does not if the training ended within an epoch, or if
      load_best_model_at_end has replaced the weights.
    - `stk status`, `watch` and `report` show what the Trainer logs, an evaluation as validation, or as test
      with metric_key_prefix="test".

    keep   how many of the newest checkpoints are kept in the run, beside the best one

    `train` raises stk.UserError for save_only_model, because nothing can continue from that, at the second
    training of a run, and in a class with a `train` of its own that loads no checkpoint.
    """

    def __init__(self, *, keep: int = 2) -> None:
        self._run = current_run()
        self._keep = whole(f"RunCallback(keep={keep!r})", keep, least=1)
        self._is_leaving = False
        # Whether this process has made a step since the newest checkpoint.
        self._is_unsaved = False
        self._trainer: Trainer | None = None
        self._resumes = False

    def newest(self, trainer: Trainer) -> str | None:
        """Return the checkpoint to resume from, if any. Collective. Raises UserError at a second training."""
        begin_once(self._run._place, "trainer.train")
        # Before the Trainer starts the workers of its data loader.
        self._run.catch_signals()
        self._trainer = trainer
        found = self._run.latest_checkpoint()
        self._resumes = found is not None
        return None if found is None else str(found)

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, *_: Any, **__: Any) -> None:
        if args.save_only_model:
            raise UserError(
                "TrainingArguments(save_only_model=True) keeps no state of the optimizer, so a stopped "
                "run could not continue: leave it out"
            )
        if self._run._resumed is None:
            raise UserError(
                "the class of your Trainer has a train() of its own, which RunCallback cannot continue from "
                "a checkpoint: call super().train() in it, or call run.latest_checkpoint() first and load it"
            )
        if self._resumes and (trainer := self._trainer) is not None:
            _restore(trainer.callback_handler.callbacks, state.stateful_callbacks)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self._is_unsaved = True
        self._run.log(step=state.global_step, total=state.max_steps, epoch=state.epoch)
        if self._run.should_stop():
            self._is_leaving = control.should_save = True
            control.should_evaluate = False

    def on_prediction_step(self, *_: Any, **__: Any) -> None:
        if not self._run._should_stop_evaluating():
            return
        self._is_leaving = True
        if self._is_unsaved and (trainer := self._trainer) is not None:
            trainer._save_checkpoint(trainer.model, None)
            # This may be another Trainer's evaluation.
            trainer.callback_handler.on_save(trainer.args, trainer.state, trainer.control)
        self._run.leave()

    def on_train_end(self, args: TrainingArguments, state: TrainerState, *_: Any, **__: Any) -> None:
        # The model then has the best weights, or an evaluation makes them half-precision numbers.
        has_others = args.load_best_model_at_end or args.fp16_full_eval or args.bf16_full_eval
        # Resumed within an epoch, or after an early stop, the Trainer would make another step. Of a dataset
        # without a length, the epochs are not known.
        is_end = state.global_step >= state.max_steps and float(state.epoch or 0.5).is_integer()
        if has_others or not is_end or not isinstance(getattr(self._trainer, "train_dataset", None), Sized):
            self._trainer = None

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        logs = logs or {}
        if _SUMMARY in logs:
            return
        prefix = next((each for each in _SPLITS if any(name.startswith(each) for name in logs)), "")
        self._run.log(
            step=state.global_step,
            total=state.max_steps,
            epoch=state.epoch,
            split=_SPLITS.get(prefix, "train"),
            **_metrics(logs, prefix),
        )

    def on_save(self, args: TrainingArguments, state: TrainerState, *_: Any, **__: Any) -> None:
        saved = Path(args.output_dir or ".", f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")
        is_best = state.best_global_step == state.global_step
        # Another run may write into the same files elsewhere, which links would share.
        is_own = saved.resolve().is_relative_to(self._run.folder.resolve())
        copy = link_or_copy if is_own else shutil.copy2
        with self._run.checkpoint(state.global_step, best=is_best, keep=self._keep) as folder:
            # All ranks have written their files by now.
            if args.process_index == 0:
                shutil.copytree(saved, folder, copy_function=copy, dirs_exist_ok=True)
        self._is_unsaved = False
        if self._is_leaving:
            self._run.leave()


def _restore(callbacks: Iterable[TrainerCallback], saved: Any) -> None:
    """Give callbacks, such as EarlyStoppingCallback, what they had counted at the checkpoint.

    restore_callback_states_from_checkpoint would replace them by new objects with the checkpoint's arguments.
    """
    for name, states in saved.items():
        same = [each for each in callbacks if type(each).__name__ == name]
        # The Trainer adds the states of each save to those of the saves before, if there are several.
        newest = states[-len(same) :] if isinstance(states, list) else [states]
        for callback, state in zip(same, newest, strict=False):
            for attribute, value in state.get("attributes", {}).items():
                setattr(callback, attribute, value)


def _metrics(logs: Mapping[str, Any], prefix: str) -> dict[str, float]:
    """Return the numbers of a log, under the names that reports use: without the prefix."""
    found: dict[str, float] = {}
    # With several evaluation sets, all names begin with that of the set, as in eval_news_runtime. Of two
    # that fit, the longer one is a metric of the user, such as eval_news_my_runtime.
    speeds = (name for name in logs if prefix and name.startswith(prefix) and name.endswith(_SPEED))
    sets = [name.removesuffix(_SPEED) for name in speeds]
    of_set = min((each for each in sets if f"{each}runtime" in logs), key=len, default=prefix)
    for name, value in logs.items():
        short = "lr" if name == "learning_rate" else metric_name(name, prefix)
        is_score = name != "epoch" and name.removeprefix(of_set) not in _NO_SCORES
        if is_score and isinstance(value, int | float) and not math.isinf(value):
            found[short] = value
    return found


def _resuming(train: Callable[..., Any]) -> Callable[..., Any]:
    """`Trainer.train` that continues automatically if the trainer has a RunCallback."""

    @functools.wraps(train)
    def wrapped(self: Trainer, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        callbacks = (each for each in self.callback_handler.callbacks if isinstance(each, RunCallback))
        if (ours := next(callbacks, None)) is not None:
            newest = ours.newest(self)
            if resume_from_checkpoint is not False:
                resume_from_checkpoint = newest or resume_from_checkpoint
        return train(self, resume_from_checkpoint, *args, **kwargs)

    return wrapped


# A callback is called too late to choose the checkpoint that a Trainer starts from.
Trainer.train = _resuming(Trainer.train)  # type: ignore[method-assign, unused-ignore]
