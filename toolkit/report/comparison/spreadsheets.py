"""Several runs as CSV, for a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolkit.attempts.held import total_cpu_hours, total_gpu_hours
from toolkit.report import facts, formats
from toolkit.report.comparison.groups import groups
from toolkit.report.spreadsheets import csv_text
from toolkit.report.values import RunSummary, config_differences, score_names


def spreadsheets(runs: Sequence[RunSummary]) -> Iterator[tuple[str, str]]:
    """Yield name and text of every table."""
    yield "runs.csv", runs_csv(runs)
    yield "groups.csv", groups_csv(runs)
    yield "differences.csv", differences_csv(runs)
    yield "curves.csv", curves_csv(runs)


def runs_csv(runs: Sequence[RunSummary]) -> str:
    """Return one line for each run: where it stands, what it took, and the scores of every split."""
    scores = dict.fromkeys(
        (split, name) for run in runs for split in run.scores for name in score_names([run])
    )
    head = ["run", "state", "seed", "step", "epoch", "seconds", "starts", "waiting_s", "allocated_s"]
    head += ["goodput", "gpu_hours", "cpu_hours", *(f"{split}_{name}" for split, name in scores)]
    rows = (
        [
            run.run_id,
            run.state,
            run.config.get("seed"),
            run.step,
            run.epoch,
            run.seconds,
            len(run.starts),
            run.goodput.waiting,
            run.goodput.allocated,
            run.goodput.share if run.starts else None,
            total_gpu_hours(run.starts).held,
            total_cpu_hours(run.starts).held,
            *(run.scores.get(split, {}).get(name) for split, name in scores),
        ]
        for run in runs
    )
    return csv_text(head, rows)


def groups_csv(runs: Sequence[RunSummary]) -> str:
    """Return one line for each setting and score: mean and sample standard deviation over the seeds."""
    split = facts.compared_split(runs)
    rows = (
        [group.label, split, name, each.mean, each.deviation, each.runs]
        for group in groups(runs)
        for name in score_names(group.runs)
        if (each := group.spread(split, name)) is not None
    )
    return csv_text(["setting", "split", "metric", "mean", "deviation", "n"], rows)


def differences_csv(runs: Sequence[RunSummary]) -> str:
    """Return one line for each key that differs."""
    rows = ([key, *map(facts.setting, values)] for key, values in config_differences(runs).items())
    return csv_text(["key", *(run.run_id for run in runs)], rows)


def curves_csv(runs: Sequence[RunSummary]) -> str:
    """Return one line for each point of each curve."""
    rows = (
        [run.run_id, split, name, step, value]
        for run in runs
        for split, columns in run.curves.items()
        for name in columns
        if name not in formats.NOT_SCORES
        for step, value in zip(*run.points(split, name), strict=True)
    )
    return csv_text(["run", "split", "metric", "step", "value"], rows)
