"""A run folder as numbers: everything that tables, plots and pages show, read once.

The run may have just begun, be in progress, or have failed: missing values are empty or None.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.config.checking.validate import policy_in
from toolkit.errors import DataError
from toolkit.files import read_json_lines, read_object
from toolkit.monitoring.usage.values import RankUsage, read_usage
from toolkit.report import formats
from toolkit.report.formats import NOT_SCORES, clean
from toolkit.report.model import Best, RunSummary, section, task_kind, wanted_metric
from toolkit.report.plotting.curves import Columns
from toolkit.report.reading import read, read_config, split_position
from toolkit.report.task_report import read_task_report
from toolkit.run.attempts.records import AttemptRecord, read_attempts, steps_done
from toolkit.run.attempts.resource_hours import attempt_usage, total_time
from toolkit.run.events import Event, read_events
from toolkit.run.failure.records import last_heartbeat
from toolkit.run.kept_code.edited_code import new_code_of, own_code
from toolkit.run.records.epoch_metrics import Epoch, by_epoch, merged, trained
from toolkit.run.records.failures import FailureRecord
from toolkit.run.records.from_json import from_json
from toolkit.run.run_dir import RunDir
from toolkit.system.output.sanitize import number

#: Number of attempts to read usage of: a run that is requeued a hundred times has thousands of files.
_USAGE_ATTEMPTS = 20

#: Times from here on are not valid dates: the year 5138.
_NO_DATE = 1e11
#: Errors that files with invalid content can lead to.
_DAMAGES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def summarize(run: RunDir, result: Mapping[str, Any] | None = None) -> RunSummary:
    """Read the folder of a run or an evaluation; `result` replaces a result.json that does not exist yet.

    Raises DataError for files with invalid content.
    """
    try:
        summary = _summary(run, result)
        _check_numbers(summary)
        return summary
    except _DAMAGES as error:
        raise DataError(
            f"{clean(str(run.path))}: its files have invalid content ({type(error).__name__}: "
            f"{clean(str(error))[:200]})"
        ) from error


def _check_numbers(summary: RunSummary) -> None:
    """Raise ValueError if a value that is shown as a number is not one."""
    values = {name: getattr(summary, name) for name in ("step", "epoch", "epochs", "seconds", "as_of")}
    if summary.best is not None:
        values |= {"best.step": summary.best.step, "best.value": summary.best.value}
    values |= {f"time {name}": value for name, value in dataclasses.asdict(summary.goodput).items()}
    for name, value in values.items():
        if value is not None and number(value) is None:
            raise ValueError(f"{name} is {str(value)[:40]!r}")


def _summary(run: RunDir, result: Mapping[str, Any] | None) -> RunSummary:
    config = read_config(run.config)
    is_ending = result is not None
    if result is None:
        result = read(run.result) or read(run.scores)
    lines = [clean(line) for line in read_json_lines(run.metrics)]
    events = list(read_events(run))
    attempts = clean(tuple(read_attempts(run)))
    if is_ending:
        attempts = _ended(attempts, result)
    placed = _placed(lines)
    curves = _curves(placed)
    failure = None if result else _failure(run, attempts, events)
    last = attempts[-1] if attempts else None
    known = [*(number(line.get("time")) for line in lines), *(event.time or None for event in events)]
    # An attempt that was killed may have no other sign.
    known += [number(last_heartbeat(run, last.nonce, 0).get("time"))] if last else []
    times = [moment for moment in known if moment is not None and moment < _NO_DATE]
    train = curves.get("train", {})
    resources = _resources(run, config)
    # The attempt that writes the final report lasts until now.
    now = time.time() if is_ending else max(times, default=0.0)
    is_data_parallel = section(config, "train").get("parallel") == "dp"
    used = tuple(attempt_usage(run, now, policy_in(resources), data_parallel=is_data_parallel))
    step, epoch = _done(run, result, curves, last)
    epochs = by_epoch(lines)
    training = trained(epochs, number(epoch) or 0.0)
    scores = _scores(result, placed, training)
    return RunSummary(
        run_id=clean(run.run_id),
        state=_state(result, failure, attempts),
        name=str(config.get("name", run.run_id)),
        config=config,
        resources=resources,
        step=step,
        epoch=epoch,
        epochs=section(config, "train").get("epochs"),
        seconds=result.get("seconds", _seconds(attempts, times)),
        samples_per_s=_median(train.get("samples_per_s", ())),
        tokens_per_s=_median(train.get("tokens_per_s", ())),
        best=_best(run, result, config, curves),
        scores=scores,
        train_epoch=training.epoch if training else None,
        curves=curves,
        by_epoch=epochs,
        attempts=attempts,
        hosts=tuple(dict.fromkeys(host for attempt in attempts for host in attempt.hosts)),
        world_size=last.world_size if last else None,
        device=last.device if last else None,
        events=dict(Counter(clean(event.name) for event in events)),
        code=own_code(run),
        of_best=tuple(section(result, "best_checkpoint").get("validation", ())),
        new_code=tuple(clean(each) for each in new_code_of(run)),
        failure=failure,
        scored=_scored(result),
        as_of=max(times, default=None),
        goodput=total_time(used),
        attempt_usage=used,
        usage=_usage(run),
        own=read_task_report(task_kind(config), run, scores, curves),
    )


def _resources(run: RunDir, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the last request; a damaged file counts as none, because no result depends on it."""
    try:
        submitted = read_config(run.job)
    except (DataError, OSError):
        submitted = {}
    return submitted or dict(section(config, "resources"))


def _usage(run: RunDir) -> tuple[RankUsage, ...]:
    nonces = [each.nonce for each in read_attempts(run) if each.nonce]
    found = (rank for nonce in nonces[-_USAGE_ATTEMPTS:] for rank in read_usage(run, nonce))
    return tuple(_cleaned(rank) for rank in found)


def _cleaned(rank: RankUsage) -> RankUsage:
    gpu = rank.gpu and dataclasses.replace(rank.gpu, name=clean(rank.gpu.name))
    return dataclasses.replace(rank, host=clean(rank.host), device=clean(rank.device), gpu=gpu)


def _placed(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines that have a split and a step; lines of one step are joined."""
    known = (line for line in merged(lines) if isinstance(line.get("split"), str))
    return [line for line in known if number(line.get("step")) is not None]


def _curves(placed: Iterable[dict[str, Any]]) -> dict[str, Columns]:
    """Turn lines into columns per split."""
    by_split: dict[str, dict[int, dict[str, Any]]] = {}
    for line in placed:
        by_split.setdefault(line["split"], {})[line["step"]] = line
    curves: dict[str, Columns] = {}
    for split in sorted(by_split, key=lambda split: (split_position(split), split)):
        in_order = [line for _, line in sorted(by_split[split].items())]
        names = dict.fromkeys(name for line in in_order for name in line if name != "split")
        curves[split] = {name: tuple(_number(line.get(name)) for line in in_order) for name in names}
    return curves


def _number(value: Any) -> float | None:
    return value if number(value) is not None or value != value else None


def _newest(curves: Mapping[str, Columns], name: str) -> Any:
    found = [value for columns in curves.values() for value in columns.get(name, ()) if value is not None]
    return max(found, default=None)


def _done(
    run: RunDir, result: Mapping[str, Any], curves: Mapping[str, Columns], last: AttemptRecord | None
) -> tuple[Any, Any]:
    """Return step and epoch of the result; of an unfinished run, the newest that any of its files knows."""
    if result:
        return result.get("step", _newest(curves, "step")), result.get("epoch", _newest(curves, "epoch"))
    progress = read_object(run.progress)
    known = {"step": steps_done(progress, last), "epoch": number(progress.get("epoch"))}
    step, epoch = (
        max((each for each in (_newest(curves, name), value) if each is not None), default=None)
        for name, value in known.items()
    )
    return step, epoch


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return statistics.median(known) if known else None


def _ended(attempts: tuple[AttemptRecord, ...], result: Mapping[str, Any]) -> tuple[AttemptRecord, ...]:
    """Complete the attempt that writes the final report: attempts.jsonl does not contain its end yet."""
    if not attempts or attempts[-1].time_end is not None:
        return attempts
    *before, last = attempts
    step, why = result.get("step"), result.get("state")
    return (*before, dataclasses.replace(last, time_end=time.time(), last_step=step, why=why))


def _seconds(attempts: Sequence[AttemptRecord], times: Sequence[float]) -> float | None:
    """Add up the attempts; an attempt without an end counts up to the last line that it wrote."""
    starts = [attempt.time_start for attempt in attempts if attempt.time_start is not None]
    spans = []
    for attempt in attempts:
        if (start := attempt.time_start) is None:
            continue
        next_start = min((other for other in starts if other > start), default=math.inf)
        written = (time for time in times if start <= time < next_start)
        spans.append((attempt.time_end or max(written, default=start)) - start)
    return sum(spans) if spans else None


def _failure(run: RunDir, attempts: Sequence[AttemptRecord], events: Iterable[Event]) -> FailureRecord | None:
    found = read(run.failure)
    failed_at = max((event.time for event in events if event.name == "failure"), default=None)
    started = attempts[-1].time_start if attempts else None
    if not found or (failed_at is not None and started is not None and started > failed_at):
        return None  # none, or one from before the last attempt
    return from_json(FailureRecord, {"class": "Error", **found})


def _scored(result: Mapping[str, Any]) -> str:
    """Describe the data and weights of an evaluation in a line; empty for a run."""
    if result.get("state") != "evaluated":
        return ""
    data = Path(result["data"]).name if result.get("data") else f"the {result.get('split')} set"
    samples = formats.count(result.get("samples"))
    return f"{data}, {samples} samples, with the best weights of {result.get('run_id')}"


def _state(
    result: Mapping[str, Any], failure: FailureRecord | None, attempts: Sequence[AttemptRecord]
) -> str:
    if result:
        return str(result.get("state", "finished"))
    if failure:
        return "failed"
    return "unfinished" if attempts else "pending"


def _best(
    run: RunDir, result: Mapping[str, Any], config: Mapping[str, Any], curves: Mapping[str, Columns]
) -> Best | None:
    """Take the best evaluation from the result, else find it in the validation curve; None without any.

    A program of the user's own marks the best checkpoint itself: the link `best` has its choice.
    """
    if best := result.get("best"):
        return Best(step=best["step"], metric=str(best["metric"]).partition(":")[0], value=best["value"])
    is_of_program = "evaluation" not in config
    linked = run.linked_best() if is_of_program else None
    metric, goal = wanted_metric(config)
    columns = curves.get("validation", {})
    sign = 1 if goal == "min" else -1
    steps = columns.get("step", ())
    losses = columns.get("loss", (None,) * len(steps))
    rows = zip(steps, columns.get(metric, ()), losses, strict=False)
    candidates = [
        (sign * value, math.inf if loss is None else loss, int(step), value)
        for step, value, loss in rows
        if step is not None and value is not None and math.isfinite(value) and linked in (None, step)
    ]
    if goal is None or not candidates:
        return None if linked is None else Best(step=linked, metric=metric, value=None)
    *_, step, value = min(candidates)
    return Best(step=step, metric=metric, value=value, is_marked=not is_of_program or linked is not None)


def _scores(
    result: Mapping[str, Any], placed: Iterable[dict[str, Any]], training: Epoch | None
) -> dict[str, dict[str, float | None]]:
    """Scores of each split; training scores are means over an epoch, even if result.json has others."""
    found: dict[str, Mapping[str, Any]] = {}
    for line in placed:
        # A line need not have all metrics.
        found[line["split"]] = {**found.get(line["split"], {}), **line}
    found |= result.get("metrics") or {}
    if training is not None:
        found["train"] = training.training
    return {
        split: {name: _number(value) for name, value in found[split].items() if name not in NOT_SCORES}
        for split in sorted(found, key=lambda split: (split_position(split), split))
    }
