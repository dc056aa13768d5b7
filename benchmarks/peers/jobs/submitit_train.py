"""submitit alone: its documented recipe, a callable with `checkpoint()`, around a careful hand-written loop.

The recipe (submitit's docs/checkpointing.md) leaves saving to the user. This loop saves more than PyTorch's
tutorial: model, optimizer and step, and the random state of every rank, every SAVE_EVERY steps; it writes a
temporary file and renames it. submitit calls `checkpoint()` in a signal handler of rank 0 only, where the
random states of the other ranks are not available.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import submitit
import torch
import torch.distributed as dist
from marks import mark, saving
from settings import BATCH_PER_RANK, RANKS, SAMPLES, SAVE_EVERY, SEED, STEPS
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from workload import Notes, TextCNN, Texts

STEPS_PER_EPOCH = SAMPLES // (BATCH_PER_RANK * RANKS)


class Training:
    """The callable that submitit pickles and calls; its `checkpoint` saves."""

    def __init__(self) -> None:
        self.model: TextCNN | None = None
        self.optimizer: torch.optim.Optimizer | None = None
        self.step = 0

    def __call__(self, folder: str) -> None:
        """Train from the newest checkpoint of `folder` to the end."""
        mark(Path(folder), "imported")
        environment = submitit.helpers.TorchDistributedEnvironment().export(set_cuda_visible_devices=False)
        dist.init_process_group("gloo")
        mark(Path(folder), "met")
        torch.manual_seed(SEED)
        self.model = TextCNN()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        replica = DistributedDataParallel(self.model)
        torch.manual_seed(SEED + environment.rank)
        notes, texts = Notes(Path(folder), environment.rank), Texts()
        self._load(Path(folder), environment.rank)
        mark(Path(folder), "loaded")
        while self.step < STEPS:
            batch = self._batch(environment.rank)
            loss = replica(texts.tokens[batch], texts.labels[batch])["loss"]
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.step += 1
            notes.step(self.step)
            if self.step % SAVE_EVERY == 0:
                with saving(Path(folder)):
                    self._save_all(Path(folder), environment.rank)
        notes.finished(self.model)

    def checkpoint(self, folder: str) -> submitit.helpers.DelayedSubmission:
        """Save; return the call to run after the requeue. submitit calls this on USR2, on rank 0."""
        if self.optimizer is not None:
            with saving(Path(folder)):
                self._save(Path(folder), [torch.get_rng_state()])
        return submitit.helpers.DelayedSubmission(Training(), folder)

    def _batch(self, rank: int) -> Tensor:
        """Return the sample numbers of this rank for the next step."""
        epoch, position = divmod(self.step, STEPS_PER_EPOCH)
        order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(SEED + epoch))
        return order[position * BATCH_PER_RANK * RANKS :][rank : BATCH_PER_RANK * RANKS : RANKS]

    def _save_all(self, folder: Path, rank: int) -> None:
        states: list[Any] = [None] * RANKS
        dist.all_gather_object(states, torch.get_rng_state())
        if rank == 0:
            self._save(folder, states)

    def _save(self, folder: Path, random_states: list[Tensor]) -> None:
        assert self.model is not None
        assert self.optimizer is not None
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "random_states": random_states,
        }
        (folder / "checkpoints").mkdir(exist_ok=True)
        unfinished = folder / "checkpoints" / "training.pt.tmp"
        torch.save(state, unfinished)
        os.replace(unfinished, folder / "checkpoints" / "training.pt")

    def _load(self, folder: Path, rank: int) -> None:
        assert self.model is not None
        assert self.optimizer is not None
        file = folder / "checkpoints" / "training.pt"
        if not file.exists():
            return
        state = torch.load(file)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
        if rank < len(state["random_states"]):
            torch.set_rng_state(state["random_states"][rank])
