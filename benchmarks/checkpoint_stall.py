"""How long training waits for a save, beside a synchronous torch.save with fsync of the same state.

python benchmarks/checkpoint_stall.py [--mb 803] [--rounds 5] [--batch 128] [--threads 1] [--dir DIR]

The two ways take turns. Then training steps are timed with and without a save being written in the
background, in turns too. The disk that counts is the one of --dir.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from toolkit.checkpoint.store import Checkpoints, Identity
from toolkit.distributed import Group
from toolkit.events import note_event
from toolkit.files import fsync_dir, read_json_lines
from toolkit.rundir import RunDir
from toolkit.state import Progress, TrainState
from toolkit.world import World

_WIDTH = 1024
#: Weight and two moments of Adam, 4 bytes each.
_BYTES_PER_PARAMETER = 12


def build_state(mb: float) -> TrainState:
    """A stack of square layers under AdamW whose checkpoint takes about so many megabytes."""
    layers = max(1, round(mb * 1e6 / _BYTES_PER_PARAMETER / _WIDTH**2))
    model = nn.Sequential(*(nn.Linear(_WIDTH, _WIDTH, bias=False) for _ in range(layers)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    return TrainState(Progress(), model, optimizer, torch.amp.GradScaler("cpu", enabled=False))


def step(state: TrainState, batch: torch.Tensor) -> None:
    """One update of all parameters."""
    state.optimizer.zero_grad()
    state.model(batch).square().mean().backward()
    state.optimizer.step()
    state.progress.step += 1


def save_synchronously(state: TrainState, folder: Path) -> None:
    """What training loops do: write, flush to disk, rename, flush the folder."""
    temporary, target = folder / "state.tmp", folder / "state.pt"
    with open(temporary, "wb") as stream:
        torch.save({"model": state.model.state_dict(), "optimizer": state.optimizer.state_dict()}, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, target)
    fsync_dir(folder)


def seconds(function: Callable[[], None]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def measure_stalls(
    state: TrainState, batch: torch.Tensor, run: RunDir, saving: Checkpoints, rounds: int
) -> tuple[list[float], list[float], float]:
    """Seconds that training waits for each synchronous save and each of ours; and for our first one."""
    synchronous, ours = [], []
    for _ in range(rounds + 1):
        step(state, batch)
        saving.reserve(state)
        synchronous.append(seconds(lambda: save_synchronously(state, run.path)))
        ours.append(seconds(lambda: saving.save(state)))
        saving.wait()
    # The first ones pay for fresh memory.
    return synchronous[1:], ours[1:], ours[0]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a step takes: seconds by the clock, and of the training thread's own work."""

    wall_s: float
    cpu_s: float


def measure_step(state: TrainState, batch: torch.Tensor) -> Cost:
    wall, cpu = time.perf_counter(), time.thread_time()
    step(state, batch)
    return Cost(time.perf_counter() - wall, time.thread_time() - cpu)


def mean(costs: list[Cost]) -> Cost:
    return Cost(statistics.mean(c.wall_s for c in costs), statistics.mean(c.cpu_s for c in costs))


def measure_steps(
    state: TrainState, batch: torch.Tensor, saving: Checkpoints, rounds: int
) -> tuple[list[Cost], list[Cost]]:
    """Mean cost of a step, by round: with nothing going on, and while a save is being written."""
    quiet, writing = [], []
    for _ in range(rounds):
        saving.save(state)
        during = []
        while saving.is_writing:
            during.append(measure_step(state, batch))
        # The last step has seen the end of the write.
        during = during[:-1] or during
        writing.append(mean(during))
        quiet.append(mean([measure_step(state, batch) for _ in during]))
    return quiet, writing


@contextmanager
def scratch(folder: Path | None) -> Iterator[RunDir]:
    with tempfile.TemporaryDirectory(prefix="stall-", dir=folder) as name:
        run = RunDir(Path(name))
        yield run


def slower(before: list[float], after: list[float]) -> float:
    """Percent."""
    return 100 * (statistics.median(after) / statistics.median(before) - 1)


def tell(name: str, values: list[float]) -> None:
    print(f"  {name:<42} {min(values):9.4f} {statistics.median(values):9.4f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mb", type=float, default=803, help="size of the state")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=128, help="rows of a step")
    parser.add_argument("--threads", type=int, default=1, help="as train.threads")
    parser.add_argument(
        "--dir", type=Path, default=None, help="where to write; default: the temporary folder"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    state = build_state(arguments.mb)
    batch = torch.randn(arguments.batch, _WIDTH)
    with scratch(arguments.dir) as run:
        group = Group(World.single(), torch.device("cpu"))
        saving = Checkpoints(
            run,
            group,
            Identity(experiment="benchmark", data="benchmark"),
            2,
            lambda event, **facts: note_event(run, event, **facts),
        )
        synchronous, ours, first = measure_stalls(state, batch, run, saving, arguments.rounds)
        quiet, writing = measure_steps(state, batch, saving, arguments.rounds)
        saving.wait()
        saves = [line for line in read_json_lines(run.events) if line["event"] == "save"]
    size = saves[-1]["bytes"] / 1e6
    print(f"{size:.0f} MB, {arguments.rounds} rounds, {arguments.threads} threads; seconds:")
    print(f"  {'':<42} {'min':>9} {'median':>9}")
    tell("torch.save + fsync, training waits", synchronous)
    tell("ours, training waits", ours)
    lasted = [line["seconds"] for line in saves]
    tell("ours, on the disk if training waits", lasted[1 : len(ours) + 1])
    tell("ours, on the disk beside training", lasted[len(ours) + 1 :])
    for name, costs in (("nothing being written", quiet), ("a save being written", writing)):
        tell(f"a step, {name}", [cost.wall_s for cost in costs])
        tell(f"a step, {name}, CPU", [cost.cpu_s for cost in costs])
    ratio = statistics.median(ours) / statistics.median(synchronous)
    print(f"stall: {ratio:.3f} of the synchronous one (the first save: {first:.3f} s)")
    wall = slower([cost.wall_s for cost in quiet], [cost.wall_s for cost in writing])
    cpu = slower([cost.cpu_s for cost in quiet], [cost.cpu_s for cost in writing])
    print(f"training is slower by {wall:.1f} % by the clock, {cpu:.1f} % by CPU time, during a write")
    if os.getloadavg()[0] > (os.cpu_count() or 1) + 0.5:
        print("this machine is busy with other work: what counts by the clock here is who gets a core")
    return 0


if __name__ == "__main__":
    sys.exit(main())
