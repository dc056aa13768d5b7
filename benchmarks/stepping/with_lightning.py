"""The same training with Lightning."""

from __future__ import annotations

from typing import Any

import lightning
import torch
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader

from benchmarks.stepping.work import Clock, Work, build_classifier, build_optimizer, decay, samples


class _Module(lightning.LightningModule):
    def __init__(self, job: Work) -> None:
        super().__init__()
        self._job = job
        # The Trainer does not change the mode, and models are loaded in evaluation mode.
        self.model = build_classifier(job).train()

    def training_step(self, batch: dict[str, torch.Tensor], _: int) -> torch.Tensor:
        loss: torch.Tensor = self.model(**batch)["loss"]
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        optimizer = build_optimizer(self.model)
        schedule = {"scheduler": decay(self._job, optimizer), "interval": "step"}
        return {"optimizer": optimizer, "lr_scheduler": schedule}


class _Watch(lightning.Callback):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, number: int) -> None:
        self._clock.step(number + 1, outputs["loss"])


def train(work: dict[str, Any]) -> list[float]:
    """Train as one of the ranks; return the times of the clock."""
    job = Work(**work)
    torch.set_num_threads(1)
    clock = Clock(job)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=job.processes,
        strategy="ddp" if job.processes > 1 else "auto",
        max_epochs=1,
        logger=CSVLogger(f"{job.folder}/lightning"),
        log_every_n_steps=job.window,
        callbacks=[_Watch(clock)],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = DataLoader(samples(job), batch_size=job.batch // job.processes, shuffle=True)
    trainer.fit(_Module(job), loader)
    return clock.times
