"""The report of a run as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from toolkit.report import formats
from toolkit.report.advice import NO_ADVICE, Advice, advice_table
from toolkit.report.blocks import Block, Document, Figure, Section, Text, figure
from toolkit.report.model import RunSummary, main_metric
from toolkit.report.run import tables as run_tables
from toolkit.report.run import text
from toolkit.report.time_and_resources import times, usage
from toolkit.report.time_and_resources.bars import time_line
from toolkit.run.records.failures import FailureRecord

_PLOTS = "toolkit.report.run.plots"
_TIME_PLOTS = "toolkit.report.time_and_resources"
_RANKS = 16
_ATTEMPTS = 15


def run_document(
    summary: RunSummary, advice: Sequence[Advice] | None = None, *, config: str = "", thorough: bool = True
) -> Document:
    """Return the report of a run.

    advice    None if it was not requested
    config    the configuration as it was written
    thorough  False: without the slowest figure, which takes as long to draw as all others
    """
    newest = f"as of {formats.moment(summary.as_of)}" if summary.as_of else "nothing recorded yet"
    return Document(
        title=summary.run_id,
        state=summary.state,
        note=newest,
        facts=tuple((name, value) for name, value in text.headline(summary) if name != "state"),
        sections=tuple(_sections(summary, advice, config, thorough)),
    )


def _sections(
    summary: RunSummary, advice: Sequence[Advice] | None, config: str, thorough: bool
) -> Iterator[Section]:
    if summary.failure:
        yield _failure(summary.failure)
    if summary.scores:
        yield Section(title="Scores", blocks=(run_tables.scores_table(summary),))
    yield Section(title="Curves", blocks=(*_curves(summary), run_tables.metrics_numbers(summary)))
    if epochs := tuple(_epochs(summary)):
        yield Section(title="Epochs", blocks=epochs)
    if summary.own is not None:
        yield from summary.own.sections()
    if summary.attempt_usage:
        yield from _time_and_resources(summary, thorough)
    if advice is not None and summary.attempt_usage:
        block: Block = advice_table(advice) if advice else Text(text=NO_ADVICE, style="note")
        yield Section(title="Advice", blocks=(block,))
    if summary.attempts:
        yield Section(title="Attempts", blocks=(run_tables.attempts_table(summary),), page_only=True)
    if config:
        whole = Text(text=config, style="code", title="Configuration")
        yield Section(title="", blocks=(whole,), page_only=True)


def _failure(found: FailureRecord) -> Section:
    """The first failing rank's error, with what to do."""
    blocks = (
        Text(text=f"{found.error}: {found.message}", style="strong"),
        Text(text=text.failure_place(found), style="note"),
        Text(text=found.advice),
        Text(text=found.traceback.rstrip(), style="code", title="Stack trace"),
    )
    said = tuple(each for each in blocks if each.text)
    return Section(title="Failure", blocks=said, is_failure=True)


def _curves(summary: RunSummary) -> Iterator[Figure]:
    for metric in dict.fromkeys(("loss", main_metric(summary))):
        if metric is not None and any(summary.points(split, metric)[0] for split in summary.curves):
            about = f"{summary.title(metric)} over the steps of {summary.run_id}"
            name = formats.file_name(metric)
            yield figure(name, formats.capitalized(about), f"{_PLOTS}:metric_plot", summary, metric)
    if summary.points("train", "lr")[0]:
        about = f"Learning rate over the steps of {summary.run_id}"
        yield figure("learning_rate", about, f"{_PLOTS}:learning_rate_plot", summary)


def _epochs(summary: RunSummary) -> Iterator[Block]:
    # Metrics that both training and validation have, the loss first.
    known = [{*epoch.training} & {*epoch.validation} for epoch in summary.by_epoch]
    names = run_tables.epoch_metrics(summary)
    metrics = [name for name in names if any({"loss", name} <= both for both in known)]
    if len(metrics) > 1:
        about = f"Loss and {summary.title(metrics[1])} by epoch of {summary.run_id}"
        yield figure("epochs", about, f"{_PLOTS}:epochs_plot", summary, metrics[:2])
    if (table := run_tables.epochs_table(summary)) is not None:
        yield table
    if summary.by_epoch:
        yield run_tables.epochs_numbers(summary)


def _time_and_resources(summary: RunSummary, thorough: bool) -> Iterator[Section]:
    """Yield the sections on time and on the use of machines.

    A terminal shows them if the run has several attempts or has used GPUs.
    """
    attempts = summary.attempt_usage
    page_only = len(attempts) < 2 and not any(attempt.gpus for attempt in attempts)
    timeline = figure(
        "timeline",
        f"Attempts of {summary.run_id} on a time line",
        f"{_TIME_PLOTS}.timeline_plot:timeline_plot",
        summary,
        in_terminal=lambda width: time_line(attempts, width),
    )
    spent = replace(times.time_table(summary), few=tuple(range(len(attempts)))[-_ATTEMPTS:])
    blocks: tuple[Block, ...] = (timeline, spent, run_tables.attempts_numbers(summary))
    yield Section(title=spent.title, blocks=blocks, page_only=page_only)
    yield Section(
        title=usage.TITLE, blocks=tuple(_usage(summary, thorough)), page_only=page_only or not summary.usage
    )


def _usage(summary: RunSummary, thorough: bool) -> Iterator[Block]:
    if not summary.usage:
        yield Text(text=usage.NONE, style="note")
        return
    # A line needs two points.
    if thorough and any(len(rank.history) > 1 for rank in summary.usage):
        about = f"Memory, CPUs and GPUs of {summary.run_id} over time"
        yield figure("usage", about, f"{_TIME_PLOTS}.usage_plot:usage_plot", summary)
    table = usage.usage_table(summary)
    if len(table.rows) > _RANKS:
        note = f"the first {_RANKS} of {len(table.rows)} rows; the page has them all"
        table = replace(table, few=tuple(range(_RANKS)), few_note=note)
    yield table
    yield run_tables.usage_numbers(summary)
