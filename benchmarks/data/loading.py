"""Whether training waits for samples that are slow to read (`train.workers`).

The task has three functions. Each sample takes 5 ms to read, like an image on a disk. A step of 16 samples
takes longer than two workers need to read them. Reading sleeps, so it takes no CPU from the model.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.figures.tables import Table
from benchmarks.measuring.rounds import Case, Size, call, in_turns

_BASELINE = "stk run, samples in memory"
#: Workers and milliseconds of reading, by candidate.
_WAYS = {
    _BASELINE: (0, 0),
    "stk run, workers 0": (0, 5),
    "stk run, workers 1": (1, 5),
    "stk run, workers 2": (2, 5),
    "stk run, workers 4": (4, 5),
}
_FILE = """\
import time

import torch
from torch import nn
from torch.utils.data import Dataset


class Slow(Dataset):
    def __init__(self, count, seconds):
        self.count, self.seconds = count, seconds

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.seconds:
            time.sleep(self.seconds)
        return torch.full((512,), index / self.count), index % 2


class Heavy(nn.Module):
    def __init__(self, width, passes):
        super().__init__()
        self.passes = passes
        self.layer, self.last = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, inputs):
        for _ in range(self.passes):
            inputs = torch.tanh(self.layer(inputs))
        return self.last(inputs)


def model(passes: int = 8):
    return Heavy(512, passes)


def data(split: str, count: int = 480, milliseconds: float = 0.0):
    return Slow(count if split == "train" else 16, milliseconds / 1000)


def step(model, batch):
    inputs, labels = batch
    return {"loss": nn.functional.cross_entropy(model(inputs), labels, reduction="none")}
"""
_YAML = """\
name: loading
task: loading.py
data: {count: %d, milliseconds: %d}
model: {passes: %d}
train: {epochs: 1, batch_size: 16, logical_ranks: 1, log_per_epoch: 100, workers: %d}
"""


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the table of the time of a step."""
    steps, passes = (4, 2) if size.quick else (40, 120)
    ways = {name: way for name, way in _WAYS.items() if not size.quick or way in ((0, 0), (1, 5))}
    cases = [
        Case(
            work="a step of 16 samples",
            candidate=candidate,
            measure=partial(
                call,
                "benchmarks.data.loading:step_ms",
                folder=str(folder),
                workers=workers,
                milliseconds=milliseconds,
                steps=steps,
                passes=passes,
            ),
        )
        for candidate, (workers, milliseconds) in ways.items()
    ]
    table = Table(
        title="Samples that take 5 ms each to read",
        goal="with enough workers under 5 % over samples in memory",
        unit="ms",
        better="less",
        baseline=_BASELINE,
        digits=1,
        notes=("The median step of one process.",),
    )
    return [table.filled(in_turns(cases, size.rounds, say), "step_ms")]


def step_ms(folder: str, workers: int, milliseconds: int, steps: int, passes: int) -> dict[str, float]:
    """Train once; return the median time of a step."""
    from toolkit.config import load
    from toolkit.files import read_json_lines
    from toolkit.reliability.stop import NeverStop
    from toolkit.run.create_run import create_run
    from toolkit.system.world import World
    from toolkit.training import worker

    home = Path(folder) / f"{workers}-{milliseconds}-{len(list(Path(folder).iterdir()))}"
    home.mkdir(parents=True)
    (home / "loading.py").write_text(_FILE)
    config = home / "loading.yaml"
    config.write_text(_YAML % (16 * steps, milliseconds, passes, workers))
    run = create_run(load(config), home / "runs")
    worker.run_attempt(run, World.single(), NeverStop())
    lines = [line for line in read_json_lines(run.metrics) if line.get("split") == "train"]
    return {"step_ms": 1000 * 16 / statistics.median(line["samples_per_s"] for line in lines[1:])}
