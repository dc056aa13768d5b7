"""The metrics and the progress of a run, written during training by rank 0."""

from __future__ import annotations

import json
import logging
import math
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from toolkit.distributed.step_sync import StepTotals
from toolkit.files import append_json_line, json_numbers, read_json_lines, write_atomic, write_view
from toolkit.run.records.epoch_metrics import PLACE
from toolkit.run.run_dir import RunDir
from toolkit.system.output.amounts import counted
from toolkit.system.output.sanitize import number
from toolkit.training.output.progress_display import Display
from toolkit.training.schedule.due_steps import StepSchedule

_PROGRESS_EVERY_S = 2.0

log = logging.getLogger("toolkit")


class MetricsWriter:
    """Writes metrics.jsonl, TensorBoard files and progress.json, and updates the display.

    A full disk does not end training: lines that cannot be written stay in memory until there is space.
    """

    def __init__(
        self, run: RunDir, schedule: StepSchedule, is_main: bool, display: Display, *, attempt: int = 0
    ) -> None:
        self._run = run
        self._attempt = attempt
        self._schedule = schedule
        self._is_main = is_main
        self._display = display
        self._metrics: dict[str, float] = {}
        self._written = 0.0
        self._interval = _Interval()
        self._tensorboard = _TensorBoard(run)
        # Valid lines of earlier attempts, until the file is rewritten with only them.
        self._kept: str | None = None
        self._waiting: deque[dict[str, Any]] = deque()

    def start(self, step: int, *, is_evaluated: bool = True) -> None:
        """Drop the lines that an earlier attempt wrote after the step from which this one starts.

        Test scores are dropped as well: the end of the run writes them again.

        is_evaluated  whether the validation scores of the step itself stay; if not, they are written again
        """
        if not self._is_main:
            return
        kept = [line for line in read_json_lines(self._run.metrics) if _stays_valid(line, step, is_evaluated)]
        # Shown until the next evaluation.
        evaluated = [line for line in kept if line["split"] == "validation"][-1:]
        scores = ((name, number(value)) for line in evaluated for name, value in line.items())
        self._metrics |= {
            f"validation_{name}": value for name, value in scores if value is not None and name not in PLACE
        }
        if self._run.metrics.exists():
            self._kept = "".join(json.dumps(line) + "\n" for line in kept)
        self.write_waiting()
        self._tensorboard.open(step)
        self._display.start(self._schedule.total_steps, step)
        self._interval = _Interval()

    @contextmanager
    def untimed(self) -> Iterator[None]:
        """A span of time that does not count for the speed."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._interval.since += time.perf_counter() - began

    def count(self, step: int, totals: StepTotals, samples: int) -> None:
        """Add a step and its number of samples."""
        if not self._is_main:
            return
        self._interval.add(totals, samples)
        self._metrics["train_loss"] = totals.loss / totals.count
        self._display.step(step, self._schedule.epoch(step), self._metrics)
        if time.monotonic() - self._written > _PROGRESS_EVERY_S:
            self.progress(step)

    def train(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write a line of training metrics with the speed of training since the last line."""
        if self._is_main:
            speed = self._interval.speed()
            self._interval = _Interval()
            self._metrics.update({f"train_{name}": value for name, value in speed.items()})
            self._line("train", step, {**metrics, **speed})

    def evaluation(self, split: str, step: int, metrics: Mapping[str, float]) -> None:
        """Write the metrics of an evaluation."""
        if self._is_main:
            self._metrics.update({f"{split}_{name}": value for name, value in metrics.items()})
            self._line(split, step, metrics)
            self._display.evaluation(split, self._schedule.epoch(step), metrics)

    def progress(self, step: int) -> None:
        """Rewrite progress.json, for display and for the end of a killed attempt. A full disk is no error."""
        self._written = time.monotonic()
        with suppress(OSError):
            write_view(
                self._run.progress,
                {
                    "time": time.time(),
                    "attempt": self._attempt,
                    "step": step,
                    "total_steps": self._schedule.total_steps,
                    "epoch": self._schedule.epoch(step),
                    "metrics": {name: v for name, v in self._metrics.items() if math.isfinite(v)},
                },
            )

    def failed(self, step: int) -> None:
        """Write the progress of a failing attempt, if it has done a step: the one before may be old."""
        if self._written:
            self.progress(step)

    def write_waiting(self) -> None:
        """Write the pending lines; if the disk is still full, warn."""
        try:
            self.flush()
        except OSError as error:
            if self._waiting:
                log.warning(
                    "%s cannot be written: %s; kept for later: %s",
                    *(self._run.metrics, error.strerror, counted(len(self._waiting), "line")),
                )

    def flush(self) -> None:
        """Write the pending lines. Raises OSError if the disk is still full."""
        if self._kept is not None:
            write_atomic(self._run.metrics, self._kept)
            self._kept = None
        while self._waiting:
            append_json_line(self._run.metrics, self._waiting[0])
            self._waiting.popleft()

    def close(self, step: int) -> None:
        """Flush and stop the display. If the disk is full, log an error: the pending lines are lost."""
        if self._is_main:
            self.progress(step)
            self._tensorboard.close()
            self.write_waiting()
            if self._waiting:
                log.error("%d lines of %s are lost", len(self._waiting), self._run.metrics)
        self._display.stop()

    def _line(self, split: str, step: int, metrics: Mapping[str, float]) -> None:
        head = {"time": time.time(), "step": step, "epoch": self._schedule.epoch(step), "split": split}
        self._waiting.append({**head, **json_numbers(metrics)})
        self.write_waiting()
        self._tensorboard.add(split, step, metrics)


def _stays_valid(line: Mapping[str, Any], step: int, is_evaluated: bool) -> bool:
    """Whether a line of an earlier attempt stays valid if the run continues after this step."""
    if line["step"] == step and line["split"] == "validation":
        return is_evaluated
    return bool(line["step"] <= step) and line["split"] != "test"


class _TensorBoard:
    """A copy of the metrics for TensorBoard. A failure ends the copy, not the run."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._writer: Any = None

    def open(self, step: int) -> None:
        """Open for writing after a step; later steps of an earlier attempt are purged."""
        try:
            from torch.utils.tensorboard import SummaryWriter  # slow to import, and only rank 0 needs it
        except ImportError:
            log.info(
                "no files for TensorBoard, which is not installed: pip install 'slurm-toolkit[tensorboard]'"
            )
            return
        with self._ignored_failures():
            self._writer = SummaryWriter(str(self._run.tensorboard), purge_step=step + 1)

    def add(self, split: str, step: int, metrics: Mapping[str, float]) -> None:
        if self._writer is not None:
            with self._ignored_failures():
                for name, value in metrics.items():
                    self._writer.add_scalar(f"{split}/{name}", value, step)

    def close(self) -> None:
        if self._writer is not None:
            with self._ignored_failures():
                self._writer.close()

    @contextmanager
    def _ignored_failures(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            # Its writer thread has ended.
            self._writer = None
            log.warning("TensorBoard's files are incomplete: %s: %s", self._run.tensorboard, error)


class _Interval:
    """Samples and tokens since the last logged line; `since` is later by the time that does not count."""

    def __init__(self) -> None:
        self.since = time.perf_counter()
        self._samples = self._tokens = 0.0

    def add(self, totals: StepTotals, samples: int) -> None:
        self._samples += samples
        self._tokens += totals.tokens

    def speed(self) -> dict[str, float]:
        seconds = max(1e-9, time.perf_counter() - self.since)
        return {
            "samples_per_s": round(self._samples / seconds, 1),
            "tokens_per_s": round(self._tokens / seconds, 1),
        }
