"""Read a run's folder repeatedly into snapshots; only new and shown data are read."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from slurm.status.liveness import is_training_here
from slurm.status.rows import RunStatus
from slurm.status.submissions import submissions
from toolkit.files import parsed, read_end, read_object
from toolkit.monitoring.usage.values import RankUsage, usage_of
from toolkit.report.formats import clean
from toolkit.run.attempts.goodput import Span, spans
from toolkit.run.attempts.records import AttemptRecord, read_attempts
from toolkit.run.failure.records import last_heartbeat
from toolkit.run.records.headline import main_name
from toolkit.run.records.ranks import RankRecord, read_ranks
from toolkit.run.run_dir import RunDir
from toolkit.system.output.sanitize import log_line

#: Largest numbers of ranks, attempts and lines of the log that are read.
RANKS, ATTEMPTS, LOG_LINES = 64, 5, 60
#: Largest number of characters of a line of the log.
_LINE = 500
#: Pictures of the bell and of backspaces: programs that draw in a line send many of them.
_DRAWING = dict.fromkeys(map(ord, "␇␈"))

Record = Mapping[str, Any]
T = TypeVar("T")
#: Bytes that are read at the end of a log.
_END = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A series of numbers and its name, oldest first; NaN for a value that was not finite."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One rank of the newest attempt.

    phase    phase of the last heartbeat; empty without one
    silent_s seconds since that heartbeat
    """

    rank: int
    host: str
    device: str
    phase: str = ""
    silent_s: float = 0.0
    usage: RankUsage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a run at one time.

    now      seconds since the epoch
    spans    its time so far, oldest first; saves: the times of its checkpoints
    attempts   the newest of attempt_count attempts, oldest first
    ranks    the first of rank_count ranks, while they may run
    log      the last lines of rank 0
    """

    now: float
    row: RunStatus
    curves: tuple[Curve, ...] = ()
    spans: tuple[Span, ...] = ()
    saves: tuple[float, ...] = ()
    attempts: tuple[AttemptRecord, ...] = ()
    attempt_count: int = 0
    ranks: tuple[Rank, ...] = ()
    rank_count: int = 0
    log: tuple[str, ...] = ()


class RunReader:
    """Reads one run. Missing and damaged files of its folder are ignored."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._metrics = GrowingLines(run.metrics)
        self._events = GrowingLines(run.events)

    def read(self, row: RunStatus) -> Snapshot:
        """Return a snapshot of the run. row: its state from `status`."""
        now = time.time()
        metrics = self._metrics.look()
        attempts = _read(read_attempts, self._run)
        newest = attempts[-1] if attempts else None
        until = now if row.is_live else self._last_known_time(newest, metrics)
        nonce = newest.nonce if newest else ""
        # The last heartbeat and load of ranks that have ended tell nothing about now.
        is_local = (row.job_id or "").startswith("local-")
        may_run = row.state in ("running", "unknown")
        if row.doing == "ending" and is_local:
            may_run = is_training_here(self._run)
        known = _read(read_ranks, self._run, nonce, newest.attempt) if newest and may_run else []
        submitted = [each.time for each in _read(submissions, self._run)]
        return Snapshot(
            now=now,
            row=row,
            curves=curves(metrics),
            spans=spans(attempts, submitted, until, is_live=row.is_live),
            saves=tuple(self._saves()),
            attempts=tuple(each for each in attempts[-ATTEMPTS:] if each.time_start is not None),
            attempt_count=len(attempts),
            ranks=tuple(self._rank(nonce, record, now) for record in known[:RANKS]),
            rank_count=len(known),
            log=tuple(self._log(nonce)),
        )

    def _last_known_time(self, newest: AttemptRecord | None, metrics: Sequence[Record]) -> float:
        """Return the latest known time of a run that is not live; 0 if none is known."""
        signs = [*metrics[-1:], *self._events.look()[-1:], read_object(self._run.progress)]
        times = [moment for sign in signs for moment in _numbers(sign, "time")]
        known = (newest.time_start, newest.time_end) if newest else ()
        return max([*times, *(moment for moment in known if moment is not None)], default=0.0)

    def _saves(self) -> Iterable[float]:
        for event in self._events.look():
            if event.get("event") == "save":
                yield from _numbers(event, "time")

    def _rank(self, nonce: str, record: RankRecord, now: float) -> Rank:
        number = record.rank or 0
        sign = last_heartbeat(self._run, nonce, number)
        said = next(iter(_numbers(sign, "time")), now)
        return Rank(
            rank=number,
            host=_one_line(record.host),
            device=_one_line(record.device or ""),
            phase=_one_line(sign.get("phase", "")),
            silent_s=max(0.0, now - said),
            usage=usage_of(self._run, nonce, number),
        )

    def _log(self, nonce: str) -> Iterable[str]:
        path = self._run.log(nonce, 0)
        for line in last_lines(path, LOG_LINES):
            yield _one_line(log_line(line).translate(_DRAWING)[:_LINE])


def _read(read: Callable[..., list[T]], *what: Any) -> list[T]:
    """Return the records of a file; none if it cannot be read, or a line is damaged or of another version."""
    try:
        return read(*what)
    except (OSError, KeyError, TypeError):
        return []


def _numbers(record: Record, *names: str) -> list[float]:
    """Return the finite numbers with these names."""
    values = (record.get(name) for name in names)
    return [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]


def _one_line(value: object) -> str:
    """Return text on one line, without control characters that move a cursor."""
    return str(clean(str(value))).replace("\n", "␊").replace("\t", "    ")


def curves(metrics: Sequence[Record]) -> tuple[Curve, ...]:
    """Return the curves of training loss, validation's main metric, and speed, if they have values."""
    wanted = [("train", "loss"), ("validation", _main_metric(metrics)), ("train", _speed(metrics))]
    found = (
        Curve(name=_title(split, name), values=tuple(_series(metrics, split, name))) for split, name in wanted
    )
    return tuple(curve for curve in found if curve.values)


def _series(metrics: Sequence[Record], split: str, name: str) -> Iterable[float]:
    for line in metrics:
        if line.get("split") == split:
            yield from [math.nan] if line.get(name, "") is None else _numbers(line, name)


def _main_metric(metrics: Sequence[Record]) -> str:
    return main_name(name for line in metrics if line.get("split") == "validation" for name in line) or "loss"


def _speed(metrics: Sequence[Record]) -> str:
    """Return tokens_per_s if samples have several tokens, else samples_per_s."""
    tokens, samples = (list(_series(metrics, "train", name)) for name in ("tokens_per_s", "samples_per_s"))
    return "tokens_per_s" if any(tokens) and tokens != samples else "samples_per_s"


def _title(split: str, name: str) -> str:
    if name.endswith("_per_s"):
        return name.replace("_per_s", "/s")
    return _one_line(f"{split} {name.replace('_', ' ')}")


class GrowingLines:
    """Reads the records of a JSON-lines file that another process appends to or replaces.

    An incomplete line is left for the next look; a damaged line is skipped.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._last = b""
        self.records: list[dict[str, Any]] = []

    def look(self) -> list[dict[str, Any]]:
        """Return all records so far; only new lines are read from the file."""
        try:
            with open(self._path, "rb") as stream:
                before = os.pread(stream.fileno(), len(self._last), self._position - len(self._last))
                if before != self._last:
                    # The file was replaced: the last line that was read is no longer there.
                    self._forget()
                stream.seek(self._position)
                self._take(stream.read())
        except FileNotFoundError:
            self._forget()
        except OSError:
            # Temporarily unreadable: keep the known records.
            pass
        return self.records

    def _forget(self) -> None:
        self._position, self._last = 0, b""
        self.records = []

    def _take(self, raw: bytes) -> None:
        whole, newline, _ = raw.rpartition(b"\n")
        if not newline:
            return
        lines = whole.split(b"\n")
        self._position += len(whole) + 1
        self._last = lines[-1] + newline
        self.records += [record for record in map(parsed, lines) if isinstance(record, dict)]


def last_lines(path: Path, count: int) -> list[bytes]:
    """Return the last `count` lines in the last 16 KB of a text file; none if it cannot be read."""
    raw = read_end(path, _END + 1)
    lines = raw.split(b"\n")
    if len(raw) > _END:
        # The first line is incomplete.
        del lines[0]
    return [line for line in lines if line.strip()][-count:]
