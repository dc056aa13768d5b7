"""A typical hand-written loop: DistributedDataParallel, a DataLoader, AdamW."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from benchmarks.stepping.work import Clock, Work, build_model, build_optimizer, decay, samples


def train(work: dict[str, Any]) -> list[float]:
    """Train as one of the ranks; return the times of the clock."""
    job = Work(**work)
    rank, size = int(os.environ["RANK"]), job.processes
    torch.set_num_threads(1)
    if size > 1:
        dist.init_process_group("gloo")
    model = build_model(job)
    replica = DistributedDataParallel(model) if size > 1 else model
    dataset, optimizer = samples(job), build_optimizer(model)
    sampler: DistributedSampler[Any] = DistributedSampler(dataset, num_replicas=size, rank=rank)
    loader = DataLoader(dataset, batch_size=job.batch // size, sampler=sampler)
    schedule, clock = decay(job, optimizer), Clock(job)
    replica.train()
    for step, batch in enumerate(loader, start=1):
        optimizer.zero_grad()
        loss = cross_entropy(replica(batch["tokens"]), batch["labels"])
        loss.backward()
        optimizer.step()
        schedule.step()
        clock.step(step, loss)
    if size > 1:
        dist.destroy_process_group()
    return clock.times
