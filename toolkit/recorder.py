"""What a run writes down while it trains: metrics, events, where it stands. Rank 0 alone writes."""

from __future__ import annotations

import json
import logging
import math
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from toolkit.calendar import Calendar
from toolkit.control import Agreement
from toolkit.display import Display
from toolkit.files import append_json_line, read_json_lines, write_atomic, write_json
from toolkit.rundir import RunDir

_PROGRESS_EVERY_S = 2.0

log = logging.getLogger("toolkit")


class Recorder:
    """Writes metrics.jsonl, TensorBoard and progress.json, and tells the display.

    A full disk does not end training: lines that cannot be written wait in memory until there is room.
    """

    def __init__(self, run: RunDir, calendar: Calendar, is_main: bool, display: Display) -> None:
        self._run = run
        self._calendar = calendar
        self._is_main = is_main
        self._display = display
        self._metrics: dict[str, float] = {}
        self._written = 0.0
        self._interval = _Interval()
        self._board = _Board(run)
        # The lines that an earlier attempt left, until the file holds them alone.
        self._kept: str | None = None
        self._waiting: deque[dict[str, Any]] = deque()

    def start(self, step: int) -> None:
        """Drop what an earlier attempt wrote after the step that this one starts from.

        Scores of the test set are of the end, so one that was not reached will write them anew.
        """
        if not self._is_main:
            return
        kept = [
            line
            for line in read_json_lines(self._run.metrics)
            if line["step"] <= step and line["split"] != "test"
        ]
        if self._run.metrics.exists():
            self._kept = "".join(json.dumps(line) + "\n" for line in kept)
        self._write_waiting()
        self._board.open(step)
        self._display.start(self._calendar.total_steps, step)

    def count(self, step: int, agreement: Agreement, samples: int) -> None:
        """Note a step that was done with so many samples, of which a loss may count words or tokens."""
        if not self._is_main:
            return
        self._interval.add(agreement, samples)
        self._metrics["train_loss"] = agreement.loss / agreement.count
        self._display.step(step, self._calendar.epoch(step), self._metrics)
        if time.monotonic() - self._written > _PROGRESS_EVERY_S:
            self.progress(step)

    def train(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write a line of training metrics, and the speed since the last one."""
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
            self._display.evaluation(split, self._calendar.epoch(step), metrics)

    def progress(self, step: int) -> None:
        """Rewrite progress.json. A view's file: a full disk must not end the run for it."""
        self._written = time.monotonic()
        with suppress(OSError):
            write_json(
                self._run.progress,
                {
                    "time": time.time(),
                    "step": step,
                    "total_steps": self._calendar.total_steps,
                    "epoch": self._calendar.epoch(step),
                    "metrics": {name: v for name, v in self._metrics.items() if math.isfinite(v)},
                },
            )

    def flush(self) -> None:
        """Write the lines that wait for room. Raises OSError where there is none yet."""
        if self._kept is not None:
            write_atomic(self._run.metrics, self._kept)
            self._kept = None
        while self._waiting:
            append_json_line(self._run.metrics, self._waiting[0])
            self._waiting.popleft()

    def close(self, step: int) -> None:
        """Flush and end the display. Lines for which there is no room even now are lost, which is said."""
        if self._is_main:
            self.progress(step)
            self._board.close()
            self._write_waiting()
            if self._waiting:
                log.error("%d lines of %s are lost", len(self._waiting), self._run.metrics)
        self._display.stop()

    def _line(self, split: str, step: int, metrics: Mapping[str, float]) -> None:
        head = {"time": time.time(), "step": step, "epoch": self._calendar.epoch(step), "split": split}
        # JSON knows no NaN.
        numbers = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        self._waiting.append({**head, **numbers})
        self._write_waiting()
        self._board.add(split, step, metrics)

    def _write_waiting(self) -> None:
        try:
            self.flush()
        except OSError as error:
            log.warning(
                "%d lines wait for room: %s: %s", len(self._waiting), self._run.metrics, error.strerror
            )


class _Board:
    """TensorBoard's copy of the metrics: a view, so that whatever happens to it ends nothing."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._writer: Any = None

    def open(self, step: int) -> None:
        """Begin after a step; what an earlier attempt wrote of later ones no longer counts."""
        from torch.utils.tensorboard import SummaryWriter  # slow to import, and only rank 0 needs it

        with self._tolerance():
            self._writer = SummaryWriter(str(self._run.tensorboard), purge_step=step + 1)

    def add(self, split: str, step: int, metrics: Mapping[str, float]) -> None:
        if self._writer is not None:
            with self._tolerance():
                for name, value in metrics.items():
                    self._writer.add_scalar(f"{split}/{name}", value, step)

    def close(self) -> None:
        if self._writer is not None:
            with self._tolerance():
                self._writer.close()

    @contextmanager
    def _tolerance(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            # Its writing thread is dead from here on.
            self._writer = None
            log.warning("TensorBoard's files end here: %s: %s", self._run.tensorboard, error)


class _Interval:
    """Samples and tokens since some moment."""

    def __init__(self) -> None:
        self._since = time.perf_counter()
        self._samples = self._tokens = 0.0

    def add(self, agreement: Agreement, samples: int) -> None:
        self._samples += samples
        self._tokens += agreement.tokens

    def speed(self) -> dict[str, float]:
        seconds = max(1e-9, time.perf_counter() - self._since)
        return {
            "samples_per_s": round(self._samples / seconds, 1),
            "tokens_per_s": round(self._tokens / seconds, 1),
        }
