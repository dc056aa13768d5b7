"""The progress of a command: the lines its script logs (`stk.current_run().log`), and its saved files."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.files import read_end, read_json, read_json_lines
from toolkit.run.records.epoch_metrics import PLACE
from toolkit.run.run_dir import RunDir
from toolkit.system.output.sanitize import number

#: Bytes at the end of metrics.jsonl that include its last line.
_TAIL_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """The log of an attempt so far.

    first_step       the step at which it began
    first_step_time  time of its first logged step, in seconds since 1970
    step             the newest step
    total            steps of the whole training; None if it has not said
    resumed          whether it resumed from a checkpoint
    """

    first_step: int
    first_step_time: float
    step: int
    total: int | None
    resumed: bool

    @property
    def is_before_end(self) -> bool:
        """Whether steps are known to be missing."""
        return self.total is not None and self.step < self.total


def logged(run: RunDir, attempt: int) -> Logged | None:
    """Return the log of an attempt; None if it has logged nothing, or the log cannot be read."""
    try:
        progress = read_json(run.progress)
        if progress is None or progress.get("attempt") != attempt:
            return None
        return Logged(
            first_step=int(progress["first_step"]),
            first_step_time=float(progress["first_step_time"]),
            step=max(int(progress["step"]), _step_after(run, float(progress["time"]))),
            total=None if (total := progress.get("total_steps")) is None else int(total),
            resumed=bool(progress["resumed"]),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def is_saving(run: RunDir, attempt: int) -> bool:
    """Return whether a script of this attempt is within `run.checkpoint`."""
    return any(run.checkpoints.glob(f".step_*.start_{attempt}.tmp"))


def _step_after(run: RunDir, written: float) -> int:
    """The step of the last line of metrics.jsonl if it is newer than progress.json, else 0."""
    for line in reversed(read_end(run.metrics, _TAIL_BYTES).splitlines()):
        try:
            found = json.loads(line)
            if isinstance(step := found["step"], int):
                return step if found["time"] > written else 0
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return 0


def final(run: RunDir) -> dict[str, Any]:
    """Return the result of a run for result.json: last step and epoch, and a value of each metric.

    Of validation it is the one that was logged with the step of the best checkpoint; else the last one.
    """
    last: int | None = None
    epoch: float | None = None
    metrics: dict[str, dict[str, float | None]] = {}
    best, of_best = run.linked_best(), dict[str, float | None]()
    for line in read_json_lines(run.metrics):
        if isinstance(split := line.get("split"), str) and isinstance(step := line.get("step"), int):
            last = step if last is None else max(last, step)
            epoch = number(line.get("epoch")) or epoch
            # None replaces a value that is not finite.
            numbers = {name: number(value) for name, value in line.items() if name not in PLACE}
            metrics.setdefault(split, {}).update(numbers)
            if step == best and split == "validation":
                of_best |= numbers
    if of_best:
        metrics["validation"] |= of_best
    checkpoint = {} if best is None else {"step": best, "validation": [*of_best]}
    return {"step": last, "epoch": epoch, "metrics": metrics, "best_checkpoint": checkpoint}


def newest_save(run: RunDir) -> Path | None:
    """Return the newest file or folder that the command has saved; None if it has saved nothing.

    Hidden files and links are skipped: a save can be written under a hidden name, and then renamed.
    """
    try:
        entries = [each for each in run.checkpoints.iterdir() if not each.name.startswith(".")]
    except OSError:
        return None
    return max((each for each in entries if not each.is_symlink()), key=_age, default=None)


def _age(entry: Path) -> tuple[float, str]:
    try:
        return entry.stat().st_mtime, entry.name
    except OSError:
        # The command has just removed it.
        return 0.0, entry.name


def save_mark(run: RunDir) -> object:
    """A value that changes with each save."""
    newest = newest_save(run)
    return None if newest is None else (newest.name, _age(newest))


def work_mark(run: RunDir) -> tuple[int, int]:
    """A value that changes as the command writes files to its work folder; links are skipped."""
    count, newest = 0, 0
    for around, folders, names in os.walk(run.work):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            with suppress(OSError):
                found = os.lstat(os.path.join(around, name))
                if stat.S_ISREG(found.st_mode):
                    count, newest = count + 1, max(newest, found.st_mtime_ns)
    return count, newest
