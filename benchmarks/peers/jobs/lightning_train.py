"""PyTorch Lightning as in its guide to Slurm clusters: DDP, auto-requeue by its SLURMEnvironment.

The guide's `trainer.fit(model)` resumes only from Lightning's save on the warning signal; `ckpt_path="last"`
only from ModelCheckpoint's. This script picks the newer of the two, as a careful user would: better than
either default. With `--stk` it is a run of this project with stk.lightning.RunCallback, which saves and
resumes by itself.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from marks import mark, saving
from settings import BATCH_PER_RANK, RANKS, SAVE_EVERY, SEED, STEPS
from torch import Tensor
from workload import Notes, TextCNN, Texts


class Classifier(lightning.LightningModule):
    """The text CNN in Lightning's terms."""

    def __init__(self) -> None:
        super().__init__()
        self.model = TextCNN()

    def training_step(self, batch: dict[str, Tensor], _: int) -> Tensor:
        return self.model(**batch)["loss"]

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Noting(Callback):
    """Writes the steps down for the driver."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def setup(self, *_: Any, **__: Any) -> None:
        mark(self._folder, "met")

    def on_train_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        self._notes = Notes(self._folder, trainer.global_rank)
        self._notes.mark("loaded")

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        self._notes.step(trainer.global_step)

    def on_train_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        if trainer.global_step >= STEPS:
            self._notes.finished(module)


class Saving(lightning.Trainer):
    """A Trainer that writes its saves down for the driver."""

    def save_checkpoint(self, *arguments: Any, **options: Any) -> None:
        with saving(Path(self.default_root_dir)):
            super().save_checkpoint(*arguments, **options)


def newest(folder: Path) -> str | None:
    """Return the value of ckpt_path: None means Lightning's own save on the signal."""
    saved_on_signal = [file.stat().st_mtime for file in folder.glob("hpc_ckpt_*.ckpt")]
    saved_by_step = [file.stat().st_mtime for file in (folder / "checkpoints").glob("last*.ckpt")]
    return None if max(saved_on_signal, default=0) > max(saved_by_step, default=0) else "last"


def main(folder: Path, with_stk: bool) -> None:
    mark(folder, "imported")
    lightning.seed_everything(SEED)
    if with_stk:
        import stk

        checkpoints = stk.lightning.RunCallback(every_n_steps=SAVE_EVERY)
    else:
        checkpoints = ModelCheckpoint(folder / "checkpoints", every_n_train_steps=SAVE_EVERY, save_last=True)
    trainer = Saving(
        accelerator="cpu",
        devices=RANKS,
        num_nodes=1,
        strategy="ddp",
        max_steps=STEPS,
        default_root_dir=folder,
        callbacks=[checkpoints, Noting(folder)],
        enable_checkpointing=not with_stk,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = torch.utils.data.DataLoader(Texts(), batch_size=BATCH_PER_RANK, shuffle=True)
    trainer.fit(Classifier(), loader, ckpt_path=None if with_stk else newest(folder))


main(Path(sys.argv[1]), "--stk" in sys.argv)
