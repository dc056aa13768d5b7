"""The loop of by_hand.py with Hugging Face's accelerate."""

from __future__ import annotations

from typing import Any

import torch
from accelerate import Accelerator
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from benchmarks.stepping.work import Clock, Work, build_model, build_optimizer, decay, samples


def train(work: dict[str, Any]) -> list[float]:
    """Train as one of the ranks; return the times of the clock."""
    job = Work(**work)
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    model, clock = build_model(job), Clock(job)
    optimizer = build_optimizer(model)
    loader = DataLoader(samples(job), batch_size=job.batch // job.processes, shuffle=True)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, decay(job, optimizer))
    model.train()
    for step, batch in enumerate(loader, start=1):
        optimizer.zero_grad()
        loss = cross_entropy(model(batch["tokens"]), batch["labels"])
        accelerator.backward(loss)
        optimizer.step()
        schedule.step()
        clock.step(step, loss)
    accelerator.end_training()
    return clock.times
