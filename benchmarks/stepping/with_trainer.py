"""The same training with transformers' Trainer."""

from __future__ import annotations

from typing import Any

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from benchmarks.stepping.work import LR, Clock, Work, build_classifier, samples


class _Watch(TrainerCallback):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # Trainer shows the loss only when it logs, which is once per window of the clock.
        self._clock.step(state.global_step, 0.0)


def train(work: dict[str, Any]) -> list[float]:
    """Train as one of the ranks; return the times of the clock."""
    job = Work(**work)
    torch.set_num_threads(1)
    clock = Clock(job)
    arguments = TrainingArguments(
        output_dir=f"{job.folder}/trainer",
        per_device_train_batch_size=job.batch // job.processes,
        max_steps=job.steps,
        learning_rate=LR,
        weight_decay=0.01,
        lr_scheduler_type="linear",
        optim="adamw_torch_fused",
        max_grad_norm=0.0,
        logging_steps=job.window,
        save_strategy="no",
        report_to=[],
        use_cpu=job.device == "cpu",
        bf16=job.device == "cuda",
        disable_tqdm=True,
        dataloader_pin_memory=job.device == "cuda",
        ddp_find_unused_parameters=False,
        remove_unused_columns=False,
    )
    trainer = Trainer(
        model=build_classifier(job), args=arguments, train_dataset=samples(job), callbacks=[_Watch(clock)]
    )
    trainer.train()
    return clock.times
