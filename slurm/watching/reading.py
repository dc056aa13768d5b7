"""What a run's folder says, read again and again: only what is new, and only what is shown."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from rich.text import Text

from slurm.status.rows import RunStatus
from slurm.submissions import submissions
from slurm.watching.growing import GrowingLines, last_lines
from slurm.watching.scene import Curve, Rank, Scene, Start
from toolkit.attempts.ledger import read_attempts
from toolkit.attempts.timeline import spans
from toolkit.failure.records import last_heartbeat
from toolkit.files import read_json, read_json_lines
from toolkit.report.formats import NOT_SCORES, clean
from toolkit.rundir import RunDir
from toolkit.usage.values import usage_of

#: Of very many only the first are read.
RANKS, STARTS, LOG_LINES = 64, 5, 60
#: Characters of a line of a log.
_LINE = 500

Record = Mapping[str, Any]


class RunReader:
    """Reads one run. Whatever is missing or damaged in its folder is left out."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._metrics = GrowingLines(run.metrics)
        self._events = GrowingLines(run.events)

    def read(self, row: RunStatus) -> Scene:
        """The run at this moment. row: where it stands, as `status` says."""
        now = time.time()
        metrics = self._metrics.look()
        attempts = self._attempts()
        newest = attempts[-1] if attempts else {}
        until = now if row.is_live else self._last_sign(newest, metrics)
        known = self._known_ranks(newest)
        return Scene(
            now=now,
            row=row,
            curves=curves(metrics),
            spans=spans(attempts, self._submitted(), until, is_live=row.is_live),
            saves=tuple(self._saves()),
            starts=tuple(start for line in attempts[-STARTS:] if (start := _start(line)) is not None),
            start_count=len(attempts),
            ranks=tuple(self._rank(newest, line, now) for line in known[:RANKS]),
            rank_count=len(known),
            log=tuple(self._log(newest)),
        )

    def _attempts(self) -> list[dict[str, Any]]:
        try:
            return read_attempts(self._run)
        except OSError:
            return []

    def _submitted(self) -> list[float]:
        """When the run was submitted."""
        # A line may be damaged or of another version.
        with suppress(OSError, KeyError, TypeError):
            return [float(each.time) for each in submissions(self._run)]
        return []

    def _last_sign(self, newest: Record, metrics: Sequence[Record]) -> float:
        """When a run that is not live was last heard of."""
        progress: Any = None
        with suppress(OSError, ValueError):
            progress = read_json(self._run.progress)
        signs = [newest, *metrics[-1:], *self._events.look()[-1:], progress]
        times = (_numbers(sign, "time", "time_start", "time_end") for sign in signs if isinstance(sign, dict))
        return max((moment for found in times for moment in found), default=0.0)

    def _saves(self) -> Iterable[float]:
        for event in self._events.look():
            if event.get("event") == "save":
                yield from _numbers(event, "time")

    def _known_ranks(self, newest: Record) -> list[Record]:
        """Who the ranks of the newest start are."""
        with suppress(OSError):
            lines = read_json_lines(self._run.ranks(str(newest.get("nonce"))))
            found = [line for line in lines if isinstance(line, dict) and isinstance(line.get("rank"), int)]
            return sorted(found, key=lambda line: line["rank"])
        return []

    def _rank(self, newest: Record, line: Record, now: float) -> Rank:
        nonce, number = str(newest.get("nonce")), line["rank"]
        sign: Any = {}
        with suppress(OSError, ValueError):
            sign = last_heartbeat(self._run, nonce, number)
        sign = sign if isinstance(sign, dict) else {}
        said = next(iter(_numbers(sign, "time")), now)
        return Rank(
            rank=number,
            host=_one_line(line.get("host", "")),
            device=_one_line(line.get("device", "")),
            phase=_one_line(sign.get("phase", "")),
            silent_s=max(0.0, now - said),
            usage=usage_of(self._run, nonce, number),
        )

    def _log(self, newest: Record) -> Iterable[str]:
        path = self._run.log(str(newest.get("nonce")), 0)
        for line in last_lines(path, LOG_LINES):
            # Of a line that was drawn several times, the last drawing.
            yield _one_line(Text.from_ansi(line.rstrip("\r").rpartition("\r")[2][:_LINE]).plain)


def _start(line: Record) -> Start | None:
    begin, end = (next(iter(_numbers(line, name)), None) for name in ("time_start", "time_end"))
    if begin is None:
        return None
    hosts = line.get("hosts")
    return Start(
        number=line["attempt"],
        begin=begin,
        end=end,
        steps=(_step(line.get("first_step")), _step(line.get("last_step"))),
        why=_one_line(line.get("why") or ""),
        hosts=tuple(_one_line(host) for host in hosts) if isinstance(hosts, list) else (),
    )


def _step(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _numbers(record: Record, *names: str) -> list[float]:
    """The finite numbers under these names."""
    values = (record.get(name) for name in names)
    return [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]


def _one_line(value: object) -> str:
    """Foreign text that may be shown: nothing in it moves a cursor."""
    return str(clean(str(value))).replace("\n", "␊").replace("\t", "    ")


# -- numbers ---------------------------------------------------------------------------------------


def curves(metrics: Sequence[Record]) -> tuple[Curve, ...]:
    """Loss, the main metric of the validation, and the speed, as far as they are there."""
    wanted = [("train", "loss"), ("validation", _main_metric(metrics)), ("train", _speed(metrics))]
    found = (
        Curve(name=_title(split, name), values=tuple(_series(metrics, split, name))) for split, name in wanted
    )
    return tuple(curve for curve in found if curve.values)


def _series(metrics: Sequence[Record], split: str, name: str) -> Iterable[float]:
    for line in metrics:
        if line.get("split") == split:
            yield from _numbers(line, name)


def _main_metric(metrics: Sequence[Record]) -> str:
    """The first score of the validation beside its loss; without one, the loss."""
    line: Record = next((line for line in reversed(metrics) if line.get("split") == "validation"), {})
    return next((name for name in line if name != "loss" and name not in NOT_SCORES), "loss")


def _speed(metrics: Sequence[Record]) -> str:
    """Tokens a second where tokens are counted, else samples."""
    return "tokens_per_s" if any(_series(metrics, "train", "tokens_per_s")) else "samples_per_s"


def _title(split: str, name: str) -> str:
    if name.endswith("_per_s"):
        return name.replace("_per_s", "/s")
    return _one_line(f"{split} {name.replace('_', ' ')}")
