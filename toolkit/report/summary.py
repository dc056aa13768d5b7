"""A run folder as numbers: everything that tables, plots and pages show, read once.

Robust to a run that has just begun, is under way, or has failed: what is not there is empty or None.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from toolkit.artifacts.epochs import by_epoch
from toolkit.attempts.held import Held, held, total_time
from toolkit.attempts.ledger import read_attempts
from toolkit.errors import DataError
from toolkit.files import read_json, read_json_lines
from toolkit.report import formats
from toolkit.report.formats import NOT_SCORES, clean
from toolkit.report.reading import (
    read,
    read_classes,
    read_curves,
    read_labels,
    read_slices,
    split_position,
)
from toolkit.report.values import (
    Attempt,
    Best,
    Columns,
    Failure,
    RunSummary,
    section,
    to_json,
    wanted_metric,
)
from toolkit.rundir import RunDir
from toolkit.usage.values import RankUsage, read_usage

#: Starts of which the usage is read: a run that is put back a hundred times has files of thousands of ranks.
_USAGE_STARTS = 20

__all__ = ["RunSummary", "summarize", "to_json"]


def summarize(run: RunDir, result: Mapping[str, Any] | None = None) -> RunSummary:
    """Read the folder of a run, or of an evaluation; `result` stands for a result.json that is yet to be.

    Raises DataError for a file that holds no valid JSON or YAML.
    """
    config = read(run.config, _read_config)
    if result is None:
        result = read(run.result, read_json) or read(run.scores, read_json)
    lines = [clean(line) for line in read_json_lines(run.metrics)]
    events = [clean(line) for line in read_json_lines(run.events)]
    attempts = _attempts(clean(line) for line in read_json_lines(run.attempts))
    curves = _curves(lines)
    failure = None if result else _failure(run, attempts, events)
    last = attempts[-1] if attempts else None
    times = [line["time"] for line in (*lines, *events) if "time" in line]
    train = curves.get("train", {})
    resources = _resources(run, config)
    starts = _starts(run, config, resources, max(times, default=0.0))
    return RunSummary(
        run_id=clean(run.run_id),
        state=_state(result, failure, attempts),
        name=str(config.get("name", run.run_id)),
        config=config,
        resources=resources,
        step=result.get("step", _newest(curves, "step")),
        epoch=result.get("epoch", _newest(curves, "epoch")),
        epochs=section(config, "train").get("epochs"),
        seconds=result.get("seconds", _seconds(attempts, times)),
        samples_per_s=_median(train.get("samples_per_s", ())),
        tokens_per_s=_median(train.get("tokens_per_s", ())),
        best=_best(result, config, curves),
        scores=_scores(result, curves),
        curves=curves,
        by_epoch=by_epoch(lines),
        labels=read_labels(run),
        classes=read_classes(run),
        two_classes=read_curves(run),
        slices=read_slices(run),
        attempts=attempts,
        hosts=tuple(dict.fromkeys(host for attempt in attempts for host in attempt.hosts)),
        world_size=last.world_size if last else None,
        device=last.device if last else None,
        events=_tally(events),
        failure=failure,
        scored=_scored(result),
        as_of=max(times, default=None),
        goodput=total_time(starts),
        starts=starts,
        usage=_usage(run),
    )


def _starts(
    run: RunDir, config: Mapping[str, Any], resources: Mapping[str, Any], now: float
) -> tuple[Held, ...]:
    data_parallel = section(config, "train").get("parallel") == "dp"
    cpus = resources.get("cpus_per_task")
    asked = cpus if isinstance(cpus, int) else 1
    return tuple(held(run, now, cpus_per_task=asked, data_parallel=data_parallel))


def _resources(run: RunDir, config: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for at last; no result hangs on it, so a damaged file is as good as none."""
    try:
        submitted = read(run.job, _read_config)
    except (DataError, OSError):
        submitted = {}
    return submitted or dict(section(config, "resources"))


def _usage(run: RunDir) -> tuple[RankUsage, ...]:
    nonces = [str(line["nonce"]) for line in read_attempts(run) if line.get("nonce")]
    found = (rank for nonce in nonces[-_USAGE_STARTS:] for rank in read_usage(run, nonce))
    return tuple(_cleaned(rank) for rank in found)


def _cleaned(rank: RankUsage) -> RankUsage:
    gpu = rank.gpu and dataclasses.replace(rank.gpu, name=clean(rank.gpu.name))
    return dataclasses.replace(rank, host=clean(rank.host), device=clean(rank.device), gpu=gpu)


def _read_config(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else None


def _curves(lines: Iterable[dict[str, Any]]) -> dict[str, Columns]:
    """Turn lines into columns per split; of two lines for one step the later one counts."""
    by_split: dict[str, dict[int, dict[str, Any]]] = {}
    for line in lines:
        if "split" in line and "step" in line:
            by_split.setdefault(line["split"], {})[line["step"]] = line
    splits = sorted(by_split, key=lambda split: (split_position(split), split))
    return {split: _columns([by_split[split][step] for step in sorted(by_split[split])]) for split in splits}


def _columns(lines: Sequence[Mapping[str, Any]]) -> Columns:
    names = dict.fromkeys(name for line in lines for name in line if name != "split")
    return {name: tuple(_number(line.get(name)) for line in lines) for name in names}


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _newest(curves: Mapping[str, Columns], name: str) -> Any:
    found = [value for columns in curves.values() for value in columns.get(name, ()) if value is not None]
    return max(found, default=None)


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return statistics.median(known) if known else None


def _attempts(lines: Iterable[dict[str, Any]]) -> tuple[Attempt, ...]:
    """Join the start and the end of each attempt."""
    merged: dict[int, dict[str, Any]] = {}
    for line in lines:
        merged.setdefault(line.get("attempt", 0), {}).update(line)
    known = {field.name for field in dataclasses.fields(Attempt)}
    return tuple(
        _attempt({name: value for name, value in merged[number].items() if name in known})
        for number in sorted(merged)
    )


def _attempt(fields: dict[str, Any]) -> Attempt:
    job_id = fields.pop("job_id", None)
    hosts = tuple(fields.pop("hosts", None) or ())
    return Attempt(job_id=None if job_id is None else str(job_id), hosts=hosts, **fields)


def _seconds(attempts: Sequence[Attempt], times: Sequence[float]) -> float | None:
    """Add up the attempts; one that was killed, or lives, counts up to the last line that it wrote."""
    starts = [attempt.time_start for attempt in attempts if attempt.time_start is not None]
    spans = []
    for attempt in attempts:
        if (start := attempt.time_start) is None:
            continue
        next_start = min((other for other in starts if other > start), default=math.inf)
        written = (time for time in times if start <= time < next_start)
        spans.append((attempt.time_end or max(written, default=start)) - start)
    return sum(spans) if spans else None


def _failure(run: RunDir, attempts: Sequence[Attempt], events: Iterable[Mapping[str, Any]]) -> Failure | None:
    found = read(run.failure, read_json)
    failed_at = max((event["time"] for event in events if event.get("event") == "failure"), default=None)
    started = attempts[-1].time_start if attempts else None
    if not found or (failed_at is not None and started is not None and started > failed_at):
        return None  # none, or one that a later start has left behind
    return Failure(
        rank=found.get("rank"),
        host=found.get("host"),
        phase=found.get("phase"),
        step=found.get("step"),
        error=str(found.get("class") or "Error"),
        message=str(found.get("message") or ""),
        advice=str(found.get("advice") or ""),
        traceback=str(found.get("traceback") or ""),
    )


def _scored(result: Mapping[str, Any]) -> str:
    """What an evaluation is of, in a line; empty for a run."""
    if result.get("state") != "evaluated":
        return ""
    data = Path(result["data"]).name if result.get("data") else f"the {result.get('split')} set"
    samples = formats.count(result.get("samples"))
    return f"{data}, {samples} samples, with the best weights of {result.get('run_id')}"


def _state(result: Mapping[str, Any], failure: Failure | None, attempts: Sequence[Attempt]) -> str:
    if result:
        return str(result.get("state", "finished"))
    if failure:
        return "failed"
    return "unfinished" if attempts else "pending"


def _best(result: Mapping[str, Any], config: Mapping[str, Any], curves: Mapping[str, Columns]) -> Best | None:
    """Take the best from the result, or find it in the validation curve while there is none."""
    if best := result.get("best"):
        return Best(step=best["step"], metric=str(best["metric"]).partition(":")[0], value=best["value"])
    metric, direction = wanted_metric(config)
    columns = curves.get("validation", {})
    sign = 1 if direction == "min" else -1
    candidates = [
        (sign * value, int(step), value)
        for step, value in zip(columns.get("step", ()), columns.get(metric, ()), strict=False)
        if step is not None and value is not None and math.isfinite(value)
    ]
    if not candidates:
        return None
    _, step, value = min(candidates)
    return Best(step=step, metric=metric, value=value)


def _scores(result: Mapping[str, Any], curves: Mapping[str, Columns]) -> dict[str, dict[str, float | None]]:
    scores = {split: _last_line(columns) for split, columns in curves.items()}
    for split, metrics in (result.get("metrics") or {}).items():
        scores[split] = {name: _number(value) for name, value in metrics.items() if name not in NOT_SCORES}
    return dict(sorted(scores.items(), key=lambda item: (split_position(item[0]), item[0])))


def _last_line(columns: Columns) -> dict[str, float | None]:
    return {name: values[-1] for name, values in columns.items() if name not in NOT_SCORES}


def _tally(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    tally: dict[str, int] = {}
    for event in events:
        kind = str(event.get("event", "unknown"))
        tally[kind] = tally.get(kind, 0) + 1
    return tally
