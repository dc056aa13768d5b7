"""Metrics and progress that a script logs: metrics.jsonl."""

from __future__ import annotations

import json
import logging
import math
import operator
import os
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from toolkit.files import (
    append_json_line,
    json_numbers,
    open_atomic,
    read_json_lines,
    read_object,
    write_view,
)
from toolkit.run.fence import is_fenced, leave_if_fenced
from toolkit.run.run_dir import RunDir
from toolkit.system.output.amounts import counted
from toolkit.workloads.custom.script.alone import hold_stand_in, make_stand_in, trains_elsewhere
from toolkit.workloads.custom.script.misuse import misuse
from toolkit.workloads.custom.script.place import Place

_PROGRESS_EVERY_S = 2.0
#: Lines that wait in memory while the disk is full.
_MOST_WAITING = 10_000
_NOT_METRICS = frozenset({"time", "attempt"})
#: Names that `run.log` takes for something else than a metric.
_RESERVED = _NOT_METRICS | {"step", "total", "split", "epoch"}

log = logging.getLogger("toolkit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Metrics of one step.

    total  steps of the whole training; None if unknown
    epoch  passes over the data so far, such as 1.5; None if there are no epochs
    at     time of the line, in seconds since 1970
    """

    step: int
    split: str = "train"
    total: int | None = None
    epoch: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    at: float = field(default_factory=time.time)

    def to_json(self) -> dict[str, Any]:
        """The line of metrics.jsonl."""
        place = {"time": self.at, "step": self.step, "epoch": self.epoch, "split": self.split}
        return place | json_numbers(self.metrics)


def checked(
    step: Any, total: Any = None, split: str = "train", epoch: Any = None, metrics: Mapping[str, Any] = {}
) -> Line:
    """Make a line from the values of `run.log`. Raises UserError for a value of the wrong type."""
    odd = sorted(_NOT_METRICS & set(metrics))
    if odd:
        raise misuse(f"run.log({odd[0]}=…)", "the name is reserved; give the metric another name")
    if not isinstance(split, str) or not split:
        raise misuse(f"run.log(split={split!r})", "expected a name, such as 'train' or 'validation'")
    return Line(
        step=whole(f"run.log(step={step!r})", step),
        split=split,
        total=None if total is None else whole(f"run.log(total={total!r})", total),
        epoch=None if epoch is None else _number("epoch", epoch),
        metrics={name: _number(name, value) for name, value in metrics.items()},
    )


def metric_name(name: str, prefix: str) -> str:
    """Return a library's name of a metric as `run.log` takes it: without the prefix if it can."""
    short = name.removeprefix(prefix)
    if short not in _RESERVED:
        return short
    return name if name != short else f"train_{name}"


def whole(call: str, value: Any, *, least: int = 0) -> int:
    """Return an integer; a tensor with one element is allowed. Raises UserError if it is below `least`."""
    try:
        found = operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        found = least - 1
    if found < least:
        raise misuse(call, f"expected a whole number, {least} or more")
    return found


def _number(name: str, value: Any) -> float:
    try:
        # A tensor or an array with one element is allowed. torch warns if a tensor has a gradient.
        return float(value.detach() if hasattr(value, "detach") else value)
    except OverflowError:
        raise misuse(f"run.log({name}=…)", "the number is too large") from None
    except (TypeError, ValueError, RuntimeError):
        found = f"found a {type(value).__name__}, expected one number"
        raise misuse(f"run.log({name}=…)", found) from None


class MetricsLog:
    """Writes the metrics and the progress of one attempt. Only rank 0 writes.

    A full disk does not end training: lines that cannot be written wait in memory.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._run = place.run
        self._waiting: deque[dict[str, Any]] = deque(maxlen=_MOST_WAITING)
        # The step from which this attempt goes on, its first line, and the time since which lines are its
        # own; None once the other later lines have been dropped.
        self._outdated: tuple[int, Line, float] | None = None
        # The time of a test that came first, until a line of training. A test alone begins no training anew.
        self._tested_at: float | None = None
        # Lines of step 0 from before the first other line.
        self._held: list[Line] = []
        self._newest: dict[str, Any] = {}
        self._shown: dict[str, float | None] = {}
        self._written = -math.inf
        # The step of the last line of this process.
        self._last = 0
        # Whether another process of this attempt has logged, and no line of a training came from this one.
        self._comes_after = False
        # The highest step of the current training for each total that this process has logged. The newest
        # total is last.
        self._highest: dict[int | None, int] = {}
        # The step of the newest line with each metric of this process.
        self._steps: dict[str, int] = {}
        self._warned: set[str] = set()

    def write(self, line: Line, resumed: int | None) -> None:
        """Add a line. Before the first line of an attempt, drop lines that it writes again.

        After an earlier attempt, lines of step 0 are held until the line of a later step, or the end, while
        `resumed` is unknown.

        resumed  the step that this attempt resumes from, -1 if it starts from the beginning, None if unknown
        """
        self._last = line.step
        if resumed is None and line.step == 0 and not self._newest and not self._is_first():
            # The script may still ask for the checkpoint that it resumes from: lines up to it must stay.
            self._held.append(line)
            return
        if self._is_due():
            # This process may have been frozen, and another attempt may have replaced it.
            leave_if_fenced(self._run, self._place.nonce)
            if resumed is not None:
                # Others may log there as well, such as a notebook or a test.
                hold_stand_in(self._place)
        self._add_held()
        self._add(line, resumed)
        if self._is_due() or line.step == line.total:
            self.progress()

    def _is_first(self) -> bool:
        """Whether no attempt has logged before. False if that is unknown: earlier lines must stay."""
        if self._place.attempt > 1:
            return False
        try:
            os.stat(self._run.metrics)
        except OSError as error:
            return isinstance(error, FileNotFoundError)
        return False

    def _is_due(self) -> bool:
        return time.monotonic() - self._written > _PROGRESS_EVERY_S

    def warn_if_early(self, step: int) -> None:
        """Warn once if the last line is of a later step than that of a new checkpoint."""
        if step < self._last:
            self._warn_once(
                "run.checkpoint(%d) was called after run.log(step=%d): an attempt that continues from there "
                "drops the metrics of later steps. If one of the calls counts epochs, count the same in both",
                *(step, self._last),
            )

    def _warn_once(self, message: str, *values: object) -> None:
        if message not in self._warned:
            self._warned.add(message)
            log.warning(message, *values)

    def resumes(self) -> None:
        """Forget the held lines of step 0: an earlier attempt has logged them."""
        self._held.clear()

    def close(self) -> None:
        """Write waiting lines and the progress, unless another attempt writes by now."""
        if not is_fenced(self._run, self._place.nonce):
            if read_object(self._run.progress).get("step"):
                # This is a test after the training, or has not come to the training: earlier lines stay.
                self._waiting += [each.to_json() for each in self._held if each.metrics]
            else:
                self._add_held()
            self.flush()
            self.progress()

    def progress(self) -> None:
        """Rewrite progress.json, if there is a line yet."""
        if not self._newest:
            return
        self._written = time.monotonic()
        with suppress(OSError):
            write_view(self._run.progress, {**self._newest, "time": time.time(), "metrics": self._shown})

    def _add_held(self) -> None:
        held, self._held = self._held, []
        for line in held:
            self._add(line, None)

    def _add(self, line: Line, resumed: int | None) -> None:
        if not self._newest:
            self._begin(line, resumed)
        if self._tested_at is not None and line.split == "train":
            self._outdated = (line.step - 1, line, self._tested_at)
            self._tested_at = None
        if line.metrics:
            self._waiting.append(line.to_json())
        self.flush()
        self._update(line)

    def _begin(self, line: Line, resumed: int | None) -> None:
        # In a run the folder exists, unless the run was moved.
        if not self._place.is_in_run:
            make_stand_in(self._run)
        found = read_object(self._run.progress)
        if self._place.is_in_run:
            is_beside = found.get("attempt") == self._place.attempt
        else:
            is_beside = trains_elsewhere(self._run)
        if is_beside and found:
            # Lines of another process of this attempt stay, such as those of a training before a test.
            # Readers take the newest line of a repeated step.
            self._newest, self._shown = found, found["metrics"]
            self._comes_after = True
            return
        begun = line.step - 1 if resumed is None else resumed
        if not is_beside:
            if line.split == "test" and resumed is None and not self._place.is_in_run:
                self._tested_at = line.at
            else:
                self._outdated = (begun, line, math.inf)
        # The pace of a second training is needed until this attempt has its own.
        of_second = {key: found[key] for key in found if key.startswith("second_")}
        self._newest = {
            **of_second,
            "step": line.step,
            "total_steps": None,
            "epoch": None,
            "attempt": self._place.attempt,
            "first_step": max(0, begun),
            "resumed": begun > 0,
            "first_step_time": time.time(),
        }

    def flush(self) -> None:
        """Write the waiting lines; without room, warn."""
        if not self._waiting and self._outdated is None:
            return
        try:
            if not self._place.is_in_run:
                # A notebook deletes it to start anew.
                self._run.path.mkdir(parents=True, exist_ok=True)
            if self._outdated is not None:
                _drop_lines(self._run, *self._outdated)
                self._outdated = None
            while self._waiting:
                append_json_line(self._run.metrics, self._waiting[0])
                self._waiting.popleft()
        except OSError as error:
            if self._waiting:
                log.warning(
                    "%s cannot be written: %s; kept for later: %s",
                    *(self._run.metrics, error.strerror, counted(len(self._waiting), "line")),
                )

    def _update(self, line: Line) -> None:
        known, total = self._newest["step"], self._newest["total_steps"]
        # Another split may count more steps than the training has.
        is_ahead = total and known >= total and line.split == "train" and line.step < (line.total or 0)
        is_second = line.split == "train" and self._begins_second(line)
        if is_second:
            self._newest |= {
                "second_attempt": self._place.attempt,
                "second_step": line.step,
                "second_time": line.at,
            }
            # The written progress is that of the end of the first.
            self._written = -math.inf
        self._newest["step"] = line.step if is_second or is_ahead else max(line.step, known)
        self._newest["total_steps"] = line.total or total
        self._newest["epoch"] = line.epoch if line.epoch is not None else self._newest["epoch"]
        numbers = {f"{line.split}_{name}": value for name, value in json_numbers(line.metrics).items()}
        self._shown.update(numbers)
        # Two models that are trained in turn may count their own steps: their metrics have other names.
        last = max((self._steps.get(name, 0) for name in numbers), default=0)
        if line.split == "train" and line.step < last:
            self._warn_once(
                "run.log(step=%d) comes after step %d: of a repeated step only the newest metrics and the "
                "newest checkpoint count. For folds, make a run of each (stk sweep), or let steps continue",
                *(line.step, last),
            )
        self._steps.update(dict.fromkeys(numbers, line.step))

    def _begins_second(self, line: Line) -> bool:
        """Whether a line of training begins a second training, such as that of a fold, with its own steps.

        The first may have stopped early. Then the second has a new total, or is another process. Two models
        that are trained in turn may have different totals, so an earlier total is no sign.
        """
        is_second, last = False, next(reversed(self._highest), None)
        if line.total and self._comes_after:
            is_second, self._comes_after = line.step < self._newest["step"], False
        elif line.total and line.step < max(self._highest.values(), default=0):
            has_ended = last is not None and self._highest[last] >= last and line.step < line.total
            is_second = has_ended or line.total not in self._highest
        if is_second:
            self._highest = dict.fromkeys(self._highest, 0)
        total = line.total or last
        self._highest[total] = max(line.step, self._highest.pop(total, 0))
        return is_second


def _drop_lines(run: RunDir, begun: int, first: Line, since: float) -> None:
    """Drop lines that an earlier attempt logged after the step that this one resumes from. Raises OSError.

    since  time of the first own line, in seconds since 1970
    """
    if not run.metrics.exists():
        return
    with open_atomic(run.metrics) as stream:
        for each in read_json_lines(run.metrics):
            step, is_same_split, at = each.get("step"), each.get("split") == first.split, each.get("time")
            is_before = isinstance(step, int) and step <= begun and not (is_same_split and step >= first.step)
            if is_before or (isinstance(at, float) and at >= since):
                stream.write(json.dumps(each) + "\n")
