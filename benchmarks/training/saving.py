"""Train and save in one of several ways; measure the pauses, and the steps during a save.

Runs in a separate process. The state is a stack of square layers with AdamW: a third of it is weights.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import torch
import torch.distributed as dist
from torch import nn

from toolkit.checkpoint.state import Progress, TrainState
from toolkit.checkpoint.store import Checkpoints
from toolkit.checkpoint.verification import Identity
from toolkit.distributed.process_group import Group
from toolkit.files import fsync_path
from toolkit.run.events import note_event, save_events
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

_WIDTH = 1024
#: Weight and two moments of Adam, 4 bytes each.
_BYTES_PER_PARAMETER = 12


class Saver(Protocol):
    """A way to save; `save` may continue in the background."""

    def stepped(self) -> None:
        """Note that a step is done."""

    def save(self) -> None:
        """Save the state; wait for an unfinished save first."""

    @property
    def is_writing(self) -> bool:
        """Whether a save is running in the background."""

    def finish(self) -> float:
        """Wait for an unfinished save; return the seconds from the last call of `save` to its end."""


class Synchronous:
    """The usual save of a training loop: write, flush to disk, rename, flush the folder."""

    is_writing = False

    def __init__(self, state: TrainState, folder: Path) -> None:
        self._state, self._folder = state, folder
        self._lasted_s = 0.0

    def stepped(self) -> None:
        pass

    def save(self) -> None:
        self._lasted_s = _seconds(self._save)

    def finish(self) -> float:
        return self._lasted_s

    def _save(self) -> None:
        temporary, target = self._folder / "state.tmp", self._folder / "state.pt"
        with open(temporary, "wb") as stream:
            torch.save(_dictionary(self._state), stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
        fsync_path(self._folder)


class Ours:
    """The checkpoints of a run, as the loop saves them."""

    def __init__(self, state: TrainState, folder: Path) -> None:
        self._state, self._run = state, RunDir(folder)
        self._checkpoints = Checkpoints(
            self._run,
            Group(World.single(), torch.device("cpu")),
            Identity(experiment="benchmark", data="benchmark"),
            2,
            lambda event, **facts: note_event(self._run, event, **facts),
        )

    def stepped(self) -> None:
        self._checkpoints.reserve(self._state)

    def save(self) -> None:
        self._checkpoints.save(self._state)

    @property
    def is_writing(self) -> bool:
        return self._checkpoints.is_writing

    def finish(self) -> float:
        self._checkpoints.wait()
        *_, last = save_events(self._run)
        return last.seconds or 0.0


class Dcp:
    """torch.distributed.checkpoint.async_save of one process, into a new folder each time.

    reuses  whether all saves are copied into the same memory; by default each allocates new memory
    """

    def __init__(self, state: TrainState, folder: Path, *, reuses: bool = False) -> None:
        from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

        self._state, self._folder = state, folder
        self._stager = DefaultStager(StagingOptions(False, False, False, False)) if reuses else None
        self._number = 0
        self._future: Future[Any] | None = None
        self._asked = self._ended = 0.0
        if not dist.is_initialized():
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]

    def stepped(self) -> None:
        pass

    def save(self) -> None:
        from torch.distributed.checkpoint import async_save  # type: ignore[attr-defined]

        self.finish()
        # Keep the two newest.
        shutil.rmtree(self._folder / str(self._number - 1), ignore_errors=True)
        self._number += 1
        self._asked = time.perf_counter()
        self._future = cast(
            "Future[Any]",
            async_save(
                _dictionary(self._state),
                checkpoint_id=self._folder / str(self._number),
                async_stager=self._stager,
            ),
        )
        self._future.add_done_callback(self._end)

    @property
    def is_writing(self) -> bool:
        return self._future is not None and not self._future.done()

    def finish(self) -> float:
        if self._future is not None:
            self._future.result()
        return self._ended - self._asked

    def _end(self, future: Future[Any]) -> None:
        self._ended = time.perf_counter()


WAYS: dict[str, Callable[[TrainState, Path], Saver]] = {
    "torch.save": Synchronous,
    "ours": Ours,
    "dcp": Dcp,
    "dcp, reused": lambda state, folder: Dcp(state, folder, reuses=True),
}


@dataclass(frozen=True, slots=True)
class _Step:
    """Seconds of a step: wall time, and CPU time of the training thread."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class _Save:
    """A save, the steps during it, and the same number of steps without a save."""

    stall_s: float
    written_s: float
    beside: list[_Step]
    quiet: list[_Step]


def train(way: str, megabytes: float, rows: int, saves: int, folder: str) -> dict[str, float]:
    """Return the figures of a training with `saves` saves, after a first one that allocates memory.

    way   one of `WAYS`
    rows  rows of a batch

    stall_s, first_s      pause of training for a save; for the first save
    midst_s               pause for a save that starts one step after the previous one
    written_s             from the call of `save` until the checkpoint is on the disk, during training
    quiet_*, beside_*     a step without a save, and one during a save: milliseconds of wall time and of CPU
                          time of the training thread; only if saves run in the background
    lost_s                total cost of a save for training: the pause, and longer steps
    """
    torch.set_num_threads(1)
    state, batch = _state(megabytes), torch.randn(rows, _WIDTH)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        saver = WAYS[way](state, Path(name))
        # In a real attempt the first save comes after some steps.
        for _ in range(3):
            _step(saver, state, batch)
        first, *later = [_save(saver, state, batch) for _ in range(saves + 1)]
        saver.save()
        _step(saver, state, batch)
        midst_s = _seconds(saver.save)
        saver.finish()
    stall_s = statistics.median(each.stall_s for each in later)
    return {
        "stall_s": stall_s,
        "first_s": first.stall_s,
        "midst_s": midst_s,
        "written_s": statistics.median(each.written_s for each in later),
        "lost_s": stall_s + sum(map(_longer_s, later)) / saves,
        **_steps(later),
    }


def _state(megabytes: float) -> TrainState:
    layers = max(1, round(megabytes * 1e6 / _BYTES_PER_PARAMETER / _WIDTH**2))
    model = nn.Sequential(*(nn.Linear(_WIDTH, _WIDTH, bias=False) for _ in range(layers)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    return TrainState(Progress(), model, optimizer, torch.amp.GradScaler("cpu", enabled=False))


def _dictionary(state: TrainState) -> dict[str, Any]:
    return {"model": state.model.state_dict(), "optimizer": state.optimizer.state_dict()}


def _step(saver: Saver, state: TrainState, batch: torch.Tensor) -> _Step:
    """Update all parameters once; return the time."""
    wall, cpu = time.perf_counter(), time.thread_time()
    state.optimizer.zero_grad()
    state.model(batch).square().mean().backward()
    state.optimizer.step()
    state.progress.step += 1
    saver.stepped()
    return _Step(time.perf_counter() - wall, time.thread_time() - cpu)


def _save(saver: Saver, state: TrainState, batch: torch.Tensor) -> _Save:
    _step(saver, state, batch)
    stall_s = _seconds(saver.save)
    beside = []
    while saver.is_writing:
        beside.append(_step(saver, state, batch))
    written_s = saver.finish()
    return _Save(stall_s, written_s, beside, [_step(saver, state, batch) for _ in beside])


def _longer_s(save: _Save) -> float:
    return sum(step.wall_s for step in save.beside) - sum(step.wall_s for step in save.quiet)


def _steps(saves: list[_Save]) -> dict[str, float]:
    # The save ended during its last step, so that step is left out.
    beside = [step for save in saves for step in save.beside[:-1] or save.beside]
    quiet = [step for save in saves for step in save.quiet]
    found = {}
    for name, steps in (("quiet", quiet), ("beside", beside)):
        if steps:
            found[f"{name}_ms"] = 1e3 * statistics.mean(step.wall_s for step in steps)
            found[f"{name}_cpu_ms"] = 1e3 * statistics.mean(step.cpu_s for step in steps)
    return found


def _seconds(function: Callable[[], None]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started
