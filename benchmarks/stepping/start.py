"""Start the ranks of one candidate, and measure their memory from outside."""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import psutil

from benchmarks.measuring.rounds import ChildFailed, Process
from benchmarks.stepping.work import Work
from tests.support.ports import free_port
from toolkit.run.run_dir import RunDir

_PERIOD_S = 0.5

#: Writes an experiment into a folder and returns its file.
Write: TypeAlias = Callable[[Path, Work, dict[str, Any]], Path]


class Memory(threading.Thread):
    """A thread that reads the resident memory of the largest descendant process, twice a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ended = threading.Event()
        self._seen: list[tuple[float, float]] = []

    def run(self) -> None:
        while not self._ended.wait(_PERIOD_S):
            sizes = [0]
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    sizes.append(process.memory_info().rss)
            self._seen.append((time.time(), max(sizes) / 1e6))

    def largest_mb(self, until: float) -> float:
        """End the thread; return the peak until a time, or the whole peak if nothing was read until then."""
        self._ended.set()
        self.join()
        before = [size for moment, size in self._seen if moment <= until]
        return max(before or [size for _, size in self._seen], default=0.0)


def peer(module: str, work: Work) -> dict[str, float]:
    """Train with a module of this package; return its figures."""
    memory = Memory()
    memory.start()
    with tempfile.TemporaryDirectory() as name:
        answers = [Path(name) / f"{rank}.json" for rank in range(work.processes)]
        port = free_port()
        ranks = [
            Process.of(
                f"benchmarks.stepping.{module}:train",
                {"work": work.as_json()},
                answer,
                _variables(rank, work, port),
            )
            for rank, answer in enumerate(answers)
        ]
        for rank in ranks:
            rank.finish()
        return _figures(json.loads(answers[0].read_text()), work, memory)


def write_ours(folder: Path, work: Work, train: dict[str, Any]) -> Path:
    """Write the experiment of our own task into a folder; return its file."""
    file = folder / "experiment.json"
    file.write_text(json.dumps(work.experiment(**train)))
    return file


def ours(work: Work, train: dict[str, Any], write: Write = write_ours) -> dict[str, float]:
    """Train with `stk run`; return its figures. The times are those of the run's metrics."""
    memory = Memory()
    memory.start()
    with tempfile.TemporaryDirectory() as name:
        file = write(Path(name), work, train)
        command = [sys.executable, "-m", "slurm", "run", str(file), "--procs", str(work.processes)]
        Process(command, {"STK_EXPERIMENT_DIR": f"{name}/experiments"}).finish()
        lines = metrics_of(Path(name) / "experiments")
        return _figures([line["time"] for line in lines], work, memory)


def metrics_of(experiments: Path) -> list[dict[str, Any]]:
    """Return the metrics of split `train` of the only run in a folder."""
    (metrics,) = (RunDir(path).metrics for path in experiments.iterdir() if (path / "config.yaml").exists())
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [line for line in lines if line["split"] == "train"]


def _figures(times: list[float], work: Work, memory: Memory) -> dict[str, float]:
    """Return the milliseconds of a step, and the megabytes of the largest process."""
    largest_mb = memory.largest_mb(times[-1])
    return {"step_ms": step_ms(times, work), "memory_mb": largest_mb}


def step_ms(times: list[float], work: Work) -> float:
    """Return the milliseconds of a step in the median window, without the first. Raises ChildFailed."""
    if len(times) < 3:
        raise ChildFailed(f"{len(times)} windows of steps are too few")
    windows = sorted(later - earlier for earlier, later in itertools.pairwise(times))
    return 1000 * windows[len(windows) // 2] / work.window


def _variables(rank: int, work: Work, port: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(work.processes),
        "LOCAL_WORLD_SIZE": str(work.processes),
        "NODE_RANK": "0",
        "GROUP_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
