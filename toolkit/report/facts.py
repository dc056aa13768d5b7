"""What a run comes to in a few words, the same in terminal and page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from toolkit.attempts.goodput import Goodput
from toolkit.report import formats, slices
from toolkit.report.spent import times
from toolkit.report.values import (
    ACCURACIES,
    ClassReport,
    RunSummary,
    TwoClassCurves,
    View,
    score_names,
)

_HOSTS_SHOWN = 8


def headline(summary: RunSummary) -> list[tuple[str, str]]:
    """Return name and value of the facts at the top, for terminal and page; unknown ones left out."""
    facts = {
        "state": summary.state,
        "scored": summary.scored,
        "steps": _steps(summary),
        "trained for": formats.duration(summary.seconds),
        "where": _where(summary),
        "best": best_words(summary),
        "speed": _speed(summary),
        "starts": _starts(summary),
        "time went to": _time(summary.goodput),
        "goodput": times.goodput_words(summary),
        "cost": times.hours_words(summary.starts),
    }
    return [(name, value) for name, value in facts.items() if value not in ("", formats.NOTHING)]


def failure_place(summary: RunSummary) -> str:
    """Return where it failed: rank, host, phase and step, as far as they are known."""
    assert summary.failure is not None
    found = summary.failure
    parts = (
        ("rank", found.rank),
        ("on", found.host),
        ("in phase", found.phase),
        ("at step", found.step),
    )
    return " ".join(f"{word} {value}" for word, value in parts if value is not None)


def class_facts(report: ClassReport) -> str:
    """Return what has one value for all classes; the areas of two classes stand with their curves."""
    areas = ("roc_auc", "average_precision") if len(report.labels) > 2 else ()
    found = {name: getattr(report, name) for name in ("accuracy", "mcc", *areas)}
    shown = [
        f"{formats.metric_title(name)} {formats.score(name, value)}"
        for name, value in found.items()
        if value is not None
    ]
    return " · ".join([*shown, f"{formats.count(report.samples)} {_rows(report.view)}"])


def averages(report: ClassReport) -> list[tuple[str, list[float | None]]]:
    """Return the averages over the classes, each with precision, recall and F1, as far as they are known."""
    found = [
        (f"{kind} average", [getattr(report, f"{kind}_{name}") for name in ("precision", "recall", "f1")])
        for kind in ("macro", "weighted")
    ]
    return [(name, values) for name, values in found if any(value is not None for value in values)]


def curve_facts(curves: TwoClassCurves) -> str:
    """Return the areas under the curves, and what they are of."""
    areas = (("roc_auc", curves.roc_auc), ("average_precision", curves.average_precision))
    shown = [f"{formats.metric_title(name)} {formats.score(name, value)}" for name, value in areas]
    of = formats.count(curves.positives + curves.negatives)
    return " · ".join([*shown, f"{formats.count(curves.positives)} of {of} are {curves.positive}"])


def operating_points(curves: TwoClassCurves) -> list[list[str]]:
    """Return header and rows: for each level, recall at that precision and precision at that recall."""
    rows = [["at least", "recall at this precision", "threshold", "precision at this recall", "threshold"]]
    pairs = zip(curves.recall_at_precision, curves.precision_at_recall, strict=True)
    for recall, precision in pairs:
        rows.append(
            [
                f"{100 * recall.at:.0f} %",
                formats.share(recall.recall, 1) if recall.threshold is not None else formats.NOTHING,
                formats.decimal(recall.threshold, 4),
                formats.share(precision.precision, 1) if precision.threshold is not None else formats.NOTHING,
                formats.decimal(precision.threshold, 4),
            ]
        )
    return rows


def epochs(summary: RunSummary) -> list[list[str]]:
    """Return header and one row for each epoch: loss and accuracies of training and of validation.

    Nothing where there are none yet.
    """
    columns = _epoch_columns(summary)
    if not columns:
        return []
    rows = [["epoch", *(f"{split} {formats.metric_title(name)}" for name, split in columns)]]
    for epoch in summary.by_epoch:
        values = ((name, getattr(epoch, split).get(name)) for name, split in columns)
        rows.append([str(epoch.epoch), *(formats.score(name, value) for name, value in values)])
    return rows


def _epoch_columns(summary: RunSummary) -> list[tuple[str, str]]:
    """Metrics and splits that an epoch has; not all of those of the validation are computed in training."""
    return [
        (name, split)
        for name in ("loss", *ACCURACIES)
        for split in ("training", "validation")
        if any(name in getattr(epoch, split) for epoch in summary.by_epoch)
    ]


def label_counts(labels: Sequence[str], splits: Mapping[str, Sequence[int]]) -> list[list[str]]:
    """Return header, one row for each label, and the sums: counts with their shares of the split."""
    columns = {"all": [sum(counts) for counts in zip(*splits.values(), strict=True)], **splits}
    rows = [["label", *columns]]
    for position, label in enumerate(labels):
        cells = ((counts[position], sum(counts)) for counts in columns.values())
        rows.append(
            [label, *(f"{formats.count(part)}  {formats.share(part, whole):>6}" for part, whole in cells)]
        )
    rows.append(["all", *(formats.count(sum(counts)) for counts in columns.values())])
    return rows


def score_rows(summary: RunSummary) -> list[list[str]]:
    """Return header and one row for each metric, with a column for each split.

    Scores of whole texts are left out where they equal those of samples: nothing was folded.
    """
    splits = summary.scores.values()
    names = [
        name
        for name in score_names([summary])
        if not name.startswith("text_")
        or any(split.get(name) not in (None, split.get(name.removeprefix("text_"))) for split in splits)
    ]
    rows = (
        [formats.metric_title(name), *(formats.score(name, split.get(name)) for split in splits)]
        for name in names
    )
    return [["metric", *summary.scores], *rows]


def _rows(view: View) -> str:
    return {"fragment": "fragments", "text": "texts"}.get(view.level or "", "samples")


def compared_split(summaries: Sequence[RunSummary]) -> str:
    """Return the split by which runs are compared: the test set where one of them has been scored on it."""
    return "test" if any("test" in summary.scores for summary in summaries) else "validation"


def slice_comparison(summaries: Sequence[RunSummary]) -> list[list[str]]:
    """Return header and one row for each slice, with the accuracy of each run; nothing without slices."""
    runs = [(summary.run_id, summary.slices) for summary in summaries]
    return slices.comparison_rows(runs, compared_split(summaries))


def setting(value: object) -> str:
    """Return a config value as YAML would show it, on one line."""
    if value is None:
        return formats.NOTHING
    return formats.one_line(str(value).lower() if isinstance(value, bool) else str(value), 60)


def best_title(summaries: Sequence[RunSummary]) -> str:
    """Return the heading of the best evaluations of several runs."""
    metrics = {summary.best.metric for summary in summaries if summary.best}
    return f"best {formats.metric_title(metrics.pop())}" if len(metrics) == 1 else "best"


def _steps(summary: RunSummary) -> str:
    if summary.step is None:
        return ""
    of = f" of {summary.epochs}" if summary.epochs else ""
    epoch = f" (epoch {summary.epoch:.4g}{of})" if summary.epoch is not None else ""
    return f"{formats.count(summary.step)}{epoch}"


def _where(summary: RunSummary) -> str:
    ranks = f"{summary.world_size} rank{'s' * (summary.world_size != 1)}" if summary.world_size else ""
    device = f" on {summary.device}" if summary.device and ranks else ""
    now = summary.attempts[-1].hosts if summary.attempts else ()
    before = [host for host in summary.hosts if host not in now]
    earlier = f"earlier {_hosts(before)}" if before else ""
    return ", ".join(part for part in (f"{ranks}{device}", _hosts(now), earlier) if part)


def _hosts(hosts: Sequence[str]) -> str:
    shown = ", ".join(hosts[:_HOSTS_SHOWN])
    return shown if len(hosts) <= _HOSTS_SHOWN else f"{shown} and {len(hosts) - _HOSTS_SHOWN} more"


def best_words(summary: RunSummary, short: bool = False) -> str:
    """Return the evaluation whose checkpoint was kept as best; empty where there is none."""
    if summary.best is None:
        return ""
    value = formats.score(summary.best.metric, summary.best.value)
    if short:
        return f"{value} @ {formats.count(summary.best.step)}"
    name, step = formats.metric_title(summary.best.metric), formats.count(summary.best.step)
    return f"validation {name} {value} at step {step}"


def _speed(summary: RunSummary) -> str:
    rates = ((summary.samples_per_s, "samples/s"), (summary.tokens_per_s, "tokens/s"))
    return ", ".join(f"{formats.count(rate)} {unit}" for rate, unit in rates if rate)


def _time(spent: Goodput) -> str:
    """Every second of the run's life once, the largest part first."""
    parts = [(seconds / (spent.total or 1.0), name) for name, seconds in asdict(spent).items()]
    return ", ".join(f"{name} {share:.1%}" for share, name in sorted(parts, reverse=True) if share >= 0.0005)


def _starts(summary: RunSummary) -> str:
    if not summary.attempts:
        return ""
    last = summary.attempts[-1]
    why = f", the last one ended: {formats.one_line(last.why, 60)}" if last.why else ""
    return f"{len(summary.attempts)}{why}"
