"""Checkpoints of a small state whose every number follows from the step."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from toolkit.checkpoint.state import Progress, TrainState
from toolkit.checkpoint.store import Checkpoints
from toolkit.checkpoint.verification import Identity
from toolkit.config.schema import Optimizer
from toolkit.distributed.process_group import Group
from toolkit.run.events import note_event
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.training.assembly.optimizers import build_optimizer

IDENTITY = Identity(experiment="e1", data="d1")
FILES = ("model.safetensors", "training.safetensors", "progress.json")

Facts = tuple[dict[str, list[float]], dict[str, Any], dict[str, Any]]


def new_state() -> TrainState:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    model.register_buffer("seen", torch.zeros(2), persistent=False)
    scaler = torch.amp.GradScaler("cpu", enabled=True)
    return TrainState(Progress(), model, build_optimizer(model, Optimizer()), scaler)


def state_at(step: int) -> TrainState:
    """A state whose every number follows from the step."""
    state = new_state()
    torch.manual_seed(step)
    for _ in range(2):
        # No forward pass: the last bits of a product depend on the number of threads of the process.
        for parameter in state.model.parameters():
            parameter.grad = torch.randn_like(parameter)
        state.optimizer.step()
    for buffer in state.model.buffers():
        buffer.fill_(step)
    state.scaler.scale(torch.zeros(1))
    state.scaler.update(2.0**step)
    state.progress = Progress(step=step, sums={"loss": step / 3}, best_value=1 / step, best_step=step)
    return state


def facts(state: TrainState) -> Facts:
    tensors = {**state.model.state_dict(), **state.training_tensors()}
    return (
        {name: value.double().flatten().tolist() for name, value in tensors.items()},
        asdict(state.progress),
        state.scaler.state_dict(),
    )


def checkpoints(
    run: RunDir, group: Group | None = None, identity: Identity = IDENTITY, keep: int = 2, faults: Any = None
) -> Checkpoints:
    group = group or Group(World.single(), torch.device("cpu"))
    saving = Checkpoints(run, group, identity, keep, lambda event, **facts: note_event(run, event, **facts))
    saving.faults = faults
    return saving


def write(saving: Checkpoints, state: TrainState, *, needed: bool = True) -> None:
    """Save, and wait until it is on the disk."""
    saving.save(state, needed=needed)
    saving.wait()


def save_state(run: RunDir, state: TrainState, identity: Identity = IDENTITY, keep: int = 2) -> None:
    write(checkpoints(run, identity=identity, keep=keep), state)


def save(run: RunDir, *steps: int, best: int | None = None) -> None:
    for step in steps:
        state = state_at(step)
        state.progress.best_step = best
        save_state(run, state)


def loaded(run: RunDir) -> TrainState:
    state = new_state()
    assert checkpoints(run).load_latest(state)
    return state


@cache
def expected_facts(step: int) -> Facts:
    """What a checkpoint of this step holds that was saved with step 10 as the best."""
    state = state_at(step)
    state.progress.best_step = 10
    return facts(state)


def truncate(file: Path) -> None:
    """Cut off the end of a file, as a full disk or a lost host may."""
    os.truncate(file, file.stat().st_size - 2)
