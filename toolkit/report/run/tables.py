"""The tables of a run that every task has."""

from __future__ import annotations

from collections.abc import Iterable

from toolkit.monitoring.usage.values import Moment
from toolkit.registry import brief_metrics
from toolkit.report import formats
from toolkit.report.blocks import Numbers, Table, table
from toolkit.report.model import RunSummary, attempt_json, main_metric, score_names

_EPOCHS = 20


def scores_table(summary: RunSummary) -> Table:
    """Return one row for each metric, with a column for each split."""
    splits = summary.scores
    rows = (
        [summary.title(name), *(summary.score(name, scores.get(name)) for scores in splits.values())]
        for name in score_names([summary])
        if _says_more(summary, name)
    )
    return table("Scores", ["metric", *(_split_title(summary, split) for split in splits)], rows)


def _says_more(summary: RunSummary, name: str) -> bool:
    """Whether a metric is no twin of another metric, or differs from it in some split."""
    known = summary.metric(name)
    if known is None or not known.twin:
        return True
    return any(scores.get(name) not in (None, scores.get(known.twin)) for scores in summary.scores.values())


def _split_title(summary: RunSummary, split: str) -> str:
    """A split for people; training scores are means over an epoch, the others belong to the best weights.

    Those of a program of the user's own belong to the step of their last line, or of its best checkpoint.
    """
    if split != "train" or summary.train_epoch is None:
        steps = () if "evaluation" in summary.config else summary.curves.get(split, {}).get("step", ())
        if split == "validation" and summary.best and summary.of_best:
            if not summary.scores[split].keys() <= {*summary.of_best}:
                return f"{split}, of several steps"
            steps = (summary.best.step,)
        return split if summary.step in (None, *steps[-1:]) or not steps else f"{split}, step {steps[-1]}"
    under_way = " so far" if (summary.epoch or 0.0) < summary.train_epoch else ""
    return f"train, mean over epoch {summary.train_epoch}{under_way}"


def epochs_table(summary: RunSummary) -> Table | None:
    """Return one row for each epoch with the loss and the main metrics; None before the first epoch ends."""
    columns = [
        (name, split)
        for name in epoch_metrics(summary)
        for split in ("training", "validation")
        if any(name in getattr(epoch, split) for epoch in summary.by_epoch)
    ]
    if not columns:
        return None
    rows = [
        [str(epoch.epoch), *(summary.score(name, getattr(epoch, split).get(name)) for name, split in columns)]
        for epoch in summary.by_epoch
    ]
    head = ["epoch", *(f"{split} {summary.title(name)}" for name, split in columns)]
    few = tuple(range(len(rows)))[-_EPOCHS:]
    note = f"the last {_EPOCHS} of {len(rows)} epochs" if len(few) < len(rows) else ""
    return table("Epochs", head, rows, few=few, few_note=note)


def epoch_metrics(summary: RunSummary) -> list[str]:
    """The loss, other metrics of training, the main metric, and the metrics that the task calls brief."""
    trained = (name for epoch in summary.by_epoch for name in epoch.training)
    first = [name for name in trained if name not in formats.NOT_SCORES]
    wanted = ["loss", *first, *filter(None, [main_metric(summary)]), *brief_metrics(summary.kind)]
    return list(dict.fromkeys(wanted))


def attempts_table(summary: RunSummary) -> Table:
    """Return one row for each attempt."""
    times = {each.time.attempt: (each.time.begin, each.time.end) for each in summary.attempt_usage}
    rows = [
        [
            str(attempt.attempt),
            attempt.job_id or formats.NOTHING,
            ", ".join(attempt.hosts),
            f"{formats.count(attempt.world_size)} × {attempt.device or '?'}",
            f"{formats.count(attempt.first_step)} to {formats.count(attempt.last_step)}",
            formats.moment(time and time[0]),
            formats.duration(time and time[1] - time[0]),
            attempt.why or formats.NOTHING,
        ]
        for attempt in summary.attempts
        for time in (times.get(attempt.attempt),)
    ]
    head = ["attempt", "job", "hosts", "ranks", "steps", "began", "took", "ended because"]
    tally = ", ".join(f"{name} ({number})" for name, number in summary.events.items())
    notes = [f"Events: {tally}"] if tally else []
    notes += [f"New code: {each}" for each in summary.new_code]
    return table("Attempts", head, rows, texts=len(head), note=". ".join(notes))


def metrics_numbers(summary: RunSummary) -> Numbers:
    """Return all metrics: split, then the columns in the order of their first appearance."""
    names = list(dict.fromkeys(name for columns in summary.curves.values() for name in columns))
    rows = [
        [split, *(columns[name][line] if name in columns else None for name in names)]
        for split, columns in summary.curves.items()
        for line in range(len(columns["step"]))
    ]
    return Numbers(name="metrics", head=["split", *names], rows=rows)


def epochs_numbers(summary: RunSummary) -> Numbers:
    """Return one line for each epoch and split."""
    parts = [(epoch.epoch, "train", epoch.training) for epoch in summary.by_epoch]
    parts += [(epoch.epoch, "validation", epoch.validation) for epoch in summary.by_epoch if epoch.validation]
    names = list(dict.fromkeys(name for _, _, scores in parts for name in scores))
    rows = [[epoch, split, *(scores.get(name) for name in names)] for epoch, split, scores in parts]
    return Numbers(name="epochs", head=["epoch", "split", *names], rows=rows)


def attempts_numbers(summary: RunSummary) -> Numbers:
    """Return one line for each attempt, at least one: its seconds by purpose, its GPU-hours and CPU-hours."""
    rows = [attempt_json(attempt) for attempt in summary.attempt_usage]
    return Numbers(name="starts", head=list(rows[0]), rows=[list(row.values()) for row in rows])


def usage_numbers(summary: RunSummary) -> Numbers:
    """Return one line for each record of each rank."""
    names = Moment.__slots__
    rows: Iterable[list[object]] = [
        [rank.nonce, rank.rank, rank.host, *(getattr(moment, name) for name in names)]
        for rank in summary.usage
        for moment in rank.history
    ]
    return Numbers(name="usage", head=["start", "rank", "host", *names], rows=rows)
