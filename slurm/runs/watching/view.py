"""Draw a snapshot of a run for a terminal of a given size. Pure functions."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

from rich.console import Group
from rich.text import Text

from slurm.runs.watching.drawing import SAVE, SPANS, Keys, bar, cut, key_line, sparkline, stretched, timeline
from slurm.runs.watching.reading import Curve, Rank, Snapshot
from toolkit.report.formats import clean, count, duration, one_line
from toolkit.run.attempts.records import AttemptRecord
from toolkit.system.output.amounts import size_mb
from toolkit.system.output.few import few

KEYS = (("c", "cancel"), ("r", "requeue"), ("l", "follow the log"), ("q", "quit"))
#: Keys for a run that was opened from the overview.
KEYS_OF_OPENED = (*KEYS[:-1], ("q Esc", "back"))

#: Seconds without a heartbeat until a rank is marked; heartbeats come at least every 15 s.
_SILENT_S = 60.0
_LABEL, _VALUE = 22, 24
_DIM = "bright_black"
_STATES = {"running": "green", "finished": "green", "failed": "red", "unknown": "red", "held": "magenta"}


def view(snapshot: Snapshot, width: int, height: int, message: str = "", keys: Keys = KEYS) -> Group:
    """Draw a snapshot. If it does not fit, ranks are left out first, then lines of the log.

    message  shown above the keys: a question, or the result of an action
    """
    top = [*_head(snapshot, width), Text(), *_curves(snapshot.curves, width), *_time(snapshot, width)]
    foot = [Text(one_line(clean(message), 1000), style="bold yellow"), key_line(keys)]
    room = max(0, height - len(top) - len(foot))
    ranks = _ranks(snapshot, room // 2 if snapshot.log else room)
    room -= len(ranks)
    log: list[Text] = []
    if snapshot.log and room >= 3:
        lines = snapshot.log[-(room - 2) :]
        log = [Text(), Text("log of rank 0", style=_DIM), *(Text(line) for line in lines)]
    body = [*top, *ranks, *log][: max(0, height - len(foot))]
    filling = [Text()] * (height - len(foot) - len(body))
    return Group(*(cut(line, width) for line in (*body, *filling, *foot)))


def _head(snapshot: Snapshot, width: int) -> Iterator[Text]:
    row = snapshot.row
    # The plain words for the state, if there are any.
    doing = row.doing or row.state
    job = f"job {row.job_id}" if row.job_id and not row.job_id.startswith("local-") else ""
    hosts = snapshot.attempts[-1].hosts if snapshot.attempts and row.state == "running" else ()
    place = f"on {few(hosts, 3)}" if hosts else ""
    facts = [("bold", row.run_id), (_STATES.get(row.state, "yellow"), doing), ("", job), ("", place)]
    yield _spread(
        Text("   ").join(Text(one_line(clean(text), 80), style=style) for style, text in facts if text),
        Text(time.strftime("%H:%M:%S", time.localtime(snapshot.now)), style=_DIM),
        width,
    )
    if row.reason and row.reason != doing:
        yield Text(one_line(clean(row.reason), 1000), style=_DIM)
    yield _progress(snapshot, width)


def _spread(left: Text, right: Text, width: int) -> Text:
    gap = width - left.cell_len - right.cell_len
    return Text.assemble(left, " " * gap, right) if gap > 0 else left


def _progress(snapshot: Snapshot, width: int) -> Text:
    row = snapshot.row
    if not row.total_steps or row.percent is None:
        return Text(f"step {count(row.step)}")
    left = f"step {count(row.step)} of {count(row.total_steps)}  "
    epoch = "" if row.epoch is None else f"  epoch {row.epoch:.2f}"
    eta = "" if row.eta_s is None else f"  about {duration(row.eta_s)} left"
    right = f"  {row.percent:.1f} %{epoch}{eta}"
    return Text.assemble(left, bar(row.percent / 100, max(0, width - len(left) - len(right))), right)


def _curves(curves: Sequence[Curve], width: int) -> Iterator[Text]:
    for curve in curves:
        label = f"{one_line(curve.name, _LABEL - 2):<{_LABEL}}"
        first, last = (_number(value) for value in (curve.values[0], curve.values[-1]))
        values = f"{first} → {last}" if len(curve.values) > 1 else last
        room = width - _LABEL - _VALUE
        # Bars of a speed begin at 0; bars of other metrics show the change.
        known = [value for value in curve.values if math.isfinite(value)]
        top = max(known, default=0.0) if curve.name.endswith("/s") else None
        line = sparkline(stretched(known, room), room, top)
        yield Text.assemble((label, _DIM), f"{values:<{_VALUE}}", (line, "cyan"))


def _number(value: float) -> str:
    """Return a number with four significant digits."""
    return count(value) if abs(value) >= 1000 else f"{value:.4g}"


def _time(snapshot: Snapshot, width: int) -> Iterator[Text]:
    if not snapshot.spans:
        return
    ends = (snapshot.spans[0].begin, snapshot.spans[-1].end)
    yield Text()
    yield timeline(snapshot.spans, snapshot.saves, width)
    begin, end = (Text(_clock(moment, snapshot.now), style=_DIM) for moment in ends)
    yield _spread(begin, end, width)
    seconds: dict[str, float] = {}
    for span in snapshot.spans:
        seconds[span.kind] = seconds.get(span.kind, 0.0) + span.end - span.begin
    legend = [(*SPANS[kind], f"{kind} {duration(seconds[kind])}") for kind in SPANS if kind in seconds]
    legend += [(*SAVE, f"{len(snapshot.saves)} saved")] if snapshot.saves else []
    yield Text("   ").join(Text.assemble((glyph, style), f" {words}") for glyph, style, words in legend)
    if snapshot.attempt_count > 1:
        yield from (_attempt(attempt, snapshot) for attempt in snapshot.attempts)


def _attempt(attempt: AttemptRecord, snapshot: Snapshot) -> Text:
    is_newest = attempt.attempt == snapshot.attempts[-1].attempt
    is_running = is_newest and snapshot.row.state == "running"
    end = attempt.time_end or (snapshot.now if is_running else None)
    first, last = attempt.first_step, attempt.last_step
    steps = "" if first is None else f"from step {count(first)}" + (f" to {count(last)}" if last else "")
    why = attempt.why or ("running" if is_running else "its end is unknown")
    facts = [
        f"attempt {attempt.attempt}",
        f"{_clock(attempt.began, snapshot.now):<12}",
        f"{duration(end - attempt.began) if end else '?':<12}",
        f"{steps:<28}",
        one_line(clean(why), 30),
    ]
    return Text("  ".join(facts), style="" if is_newest else _DIM)


def _clock(moment: float, now: float) -> str:
    """Return a time of today as HH:MM:SS, of another day with the date."""
    then = time.localtime(moment)
    is_today = time.strftime("%F", then) == time.strftime("%F", time.localtime(now))
    return time.strftime("%H:%M:%S" if is_today else "%d %b %H:%M", then)


_COLUMNS = ("rank", "host", "doing", "memory", "CPU", "GPU", "GPU memory")


def _ranks(snapshot: Snapshot, room: int) -> list[Text]:
    if not snapshot.ranks or room < 4:
        return []
    shown = snapshot.ranks[: room - 3]
    rows = [_COLUMNS, *map(_cells, shown)]
    if not any(rank.device.startswith("cuda") for rank in snapshot.ranks):
        rows = [row[:-2] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
    more = snapshot.rank_count - len(shown)
    return [
        Text(),
        Text(lines[0], style=_DIM),
        *(Text(line, style=_style(rank)) for rank, line in zip(shown, lines[1:], strict=True)),
        *([Text(f"and {more} more", style=_DIM)] if more else []),
    ]


def _style(rank: Rank) -> str:
    return "red" if rank.silent_s > _SILENT_S else ""


def _cells(rank: Rank) -> tuple[str, ...]:
    doing = one_line(rank.phase, 16)
    if _style(rank):
        doing = f"silent for {duration(rank.silent_s)}"
    who = (str(rank.rank), one_line(rank.host, 24), doing)
    if (usage := rank.usage) is None:
        return (*who, "", "", "", "")
    memory = _of(usage.rss_mb, usage.memory_limit_mb)
    cpu = f"{usage.cpu_percent / 100:.1f} of {usage.cpus} core{'s' * (usage.cpus != 1)}"
    load = sparkline([moment.cpu_percent for moment in usage.history], 10, 100.0 * usage.cpus)
    cells = (*who, memory, f"{cpu} {load}")
    if (gpu := usage.gpu) is None:
        return (*cells, "", "")
    shares = [moment.gpu_utilization for moment in usage.history if moment.gpu_utilization is not None]
    share = "?" if gpu.utilization is None else f"{gpu.utilization:3.0f} %"
    return (*cells, f"{share} {sparkline(shares, 10, 100.0)}", _of(gpu.memory_mb, gpu.memory_total_mb))


def _of(used_mb: float, limit_mb: float | None) -> str:
    return size_mb(used_mb) + ("" if limit_mb is None else f" of {size_mb(limit_mb)}")
