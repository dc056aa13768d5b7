"""The numbers of several runs in full, for a spreadsheet."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.report import formats
from toolkit.report.blocks import Numbers
from toolkit.report.comparison.groups import groups
from toolkit.report.model import RunSummary, config_differences, score_names
from toolkit.report.run import text
from toolkit.run.attempts.resource_hours import total_cpu_hours, total_gpu_hours


def runs_numbers(runs: Sequence[RunSummary]) -> Numbers:
    """Return one line for each run: its state, its costs, and the scores of every split."""
    scores = dict.fromkeys(
        (split, name) for run in runs for split in run.scores for name in score_names([run])
    )
    head = ["run", "state", "seed", "step", "epoch", "seconds", "starts", "waiting_s", "allocated_s"]
    head += ["goodput", "gpu_hours", "cpu_hours", *(f"{split}_{name}" for split, name in scores)]
    rows = [
        [
            run.run_id,
            run.state,
            run.config.get("seed"),
            run.step,
            run.epoch,
            run.seconds,
            len(run.attempt_usage),
            run.goodput.waiting,
            run.goodput.allocated,
            run.goodput.share if run.attempt_usage else None,
            total_gpu_hours(run.attempt_usage).allocated,
            total_cpu_hours(run.attempt_usage).allocated,
            *(run.scores.get(split, {}).get(name) for split, name in scores),
        ]
        for run in runs
    ]
    return Numbers(name="runs", head=head, rows=rows)


def groups_numbers(runs: Sequence[RunSummary]) -> Numbers:
    """Return one line for each setting and score: mean and sample standard deviation over the seeds."""
    split = text.compared_split(runs)
    rows = [
        [group.label, split, name, each.mean, each.deviation, each.runs]
        for group in groups(runs)
        for name in score_names(group.runs)
        if (each := group.spread(split, name)) is not None
    ]
    head = ["setting", "split", "metric", "mean", "deviation", "n"]
    return Numbers(name="groups", head=head, rows=rows)


def differences_numbers(runs: Sequence[RunSummary]) -> Numbers:
    """Return one line for each key that differs."""
    rows = [[key, *map(text.setting, values)] for key, values in config_differences(runs).items()]
    return Numbers(name="differences", head=["key", *(run.run_id for run in runs)], rows=rows)


def curves_numbers(runs: Sequence[RunSummary]) -> Numbers:
    """Return one line for each point of each curve."""
    rows = [
        [run.run_id, split, name, step, value]
        for run in runs
        for split, columns in run.curves.items()
        for name in columns
        if name not in formats.NOT_SCORES
        for step, value in zip(*run.points(split, name), strict=True)
    ]
    return Numbers(name="curves", head=["run", "split", "metric", "step", "value"], rows=rows)
