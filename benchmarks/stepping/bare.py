"""The loop of by_hand.py without DataLoader and schedule: samples are picked from tensors in memory."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from benchmarks.stepping.work import Clock, Work, build_model, build_optimizer, samples


def train(work: dict[str, Any]) -> list[float]:
    """Train as one of the ranks; return the times of the clock."""
    job = Work(**work)
    rank, size = int(os.environ["RANK"]), job.processes
    torch.set_num_threads(1)
    if size > 1:
        dist.init_process_group("gloo")
    model = build_model(job)
    replica = DistributedDataParallel(model) if size > 1 else model
    dataset, optimizer, clock = samples(job), build_optimizer(model), Clock(job)
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0))
    replica.train()
    for step, batch in enumerate(order.split(job.batch), start=1):
        own = batch[rank::size]
        optimizer.zero_grad()
        loss = cross_entropy(replica(dataset.tokens[own]), dataset.labels[own])
        loss.backward()
        optimizer.step()
        clock.step(step, loss)
    if size > 1:
        dist.destroy_process_group()
    return clock.times
