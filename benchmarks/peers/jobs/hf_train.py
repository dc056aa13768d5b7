"""The Hugging Face Trainer: a save every SAVE_EVERY steps, resumed from get_last_checkpoint.

With `--jit`, also TrainingArguments(enable_jit_checkpoint=True), its checkpoint on SIGTERM. With `--stk`, it
is a run of this project with stk.transformers.RunCallback, which resumes by itself.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from marks import mark
from settings import BATCH_PER_RANK, SAVE_EVERY, SEED, STEPS
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed
from transformers.trainer_utils import get_last_checkpoint
from workload import Notes, TextCNN, Texts


class Noting(TrainerCallback):
    """Writes steps and saves down for the driver."""

    def __init__(self, notes: Notes, folder: Path) -> None:
        self._notes = notes
        self._folder = folder
        self._stepped = 0.0

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._notes.mark("loaded")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._notes.step(state.global_step)
        self._stepped = time.time()

    def on_save(self, *_: Any, **__: Any) -> None:
        mark(self._folder, "save", begun=self._stepped)


def main(folder: Path, jit: bool, with_stk: bool) -> None:
    mark(folder, "imported")
    output = folder / "checkpoints"
    output.mkdir(exist_ok=True)
    set_seed(SEED)
    model = TextCNN()
    arguments = TrainingArguments(
        output_dir=str(output),
        max_steps=STEPS,
        per_device_train_batch_size=BATCH_PER_RANK,
        learning_rate=1e-3,
        save_strategy="steps",
        save_steps=SAVE_EVERY,
        seed=SEED,
        use_cpu=True,
        enable_jit_checkpoint=jit,
        report_to="none",
        disable_tqdm=True,
    )
    # Reading the device creates the process group.
    print(arguments.device)
    mark(folder, "met")
    notes = Notes(folder, int(os.environ["RANK"]))
    callbacks: list[Any] = [Noting(notes, folder)]
    if with_stk:
        import stk

        callbacks.append(stk.transformers.RunCallback())
    trainer = Trainer(model=model, args=arguments, train_dataset=Texts(), callbacks=callbacks)
    trainer.train(resume_from_checkpoint=None if with_stk else get_last_checkpoint(str(output)))
    if trainer.state.global_step >= STEPS:
        notes.finished(model)


main(Path(sys.argv[1]), "--jit" in sys.argv, "--stk" in sys.argv)
