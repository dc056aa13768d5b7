"""The end of a run: score the best weights, write the artifacts and the report, then result.json."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolkit.checkpoint.loading.broadcast import broadcast_checkpoint
from toolkit.checkpoint.loading.load import load_weights
from toolkit.checkpoint.verification import verify
from toolkit.data.prepared.results import Result, keeps_results, record_result
from toolkit.errors import CheckpointError
from toolkit.files import json_numbers, read_json_lines, write_json
from toolkit.reliability.stop import Stop
from toolkit.run.events import note_event
from toolkit.run.phases import Phase
from toolkit.run.records.epoch_metrics import by_epoch, trained
from toolkit.run.run_dir import RunDir
from toolkit.training.context import TrainContext
from toolkit.training.evaluation import score_split


def finish(run: RunDir, context: TrainContext, stop: Stop, attempts: int, seconds: float) -> None:
    """Score validation and test with the best weights and close the run. Collective.

    Raises StoppedEarly if a rank is asked to stop during this; the next attempt scores both again.
    """
    progress = context.state.progress
    best_step = progress.step if progress.best_step is None else progress.best_step
    _load_weights(run.checkpoint(best_step), context)
    if context.group.world.is_main:
        # Lines that found no room before.
        context.metrics_writer.flush()
    metrics = {"train": _train_metrics(run, context.schedule.epoch(progress.step))}
    splits = ["validation", "test"] if context.experiment.evaluation.test else ["validation"]
    for split in splits:
        if split in context.task.splits:
            metrics[split] = _score(run, context, stop, split, best_step)
    if context.group.world.is_main:
        result = {
            "state": "finished",
            "step": progress.step,
            "epoch": context.schedule.epoch(progress.step),
            "metrics": metrics,
            "best": {
                "step": best_step,
                "metric": context.experiment.evaluation.metric,
                "value": progress.best_value,
            },
            "attempts": attempts,
            "seconds": round(seconds, 3),
        }
        _write(run, context, result)


def _load_weights(folder: Path, context: TrainContext) -> None:
    """Load the weights of a checkpoint on all ranks. Collective."""
    # Reading the whole checkpoint takes about as long as saving it.
    context.enter(Phase.SAVE)
    if context.group.world.is_main:
        # Scoring may take long or fail; until then `stk status` shows that all steps are done.
        context.metrics_writer.progress(context.state.progress.step)
    # The others wait for rank 0, which has written the checkpoint.
    context.group.main_first(lambda: _verify(folder))
    broadcast_checkpoint(folder, context.group)
    load_weights(folder, context.state.model)


def _verify(folder: Path) -> None:
    """Verify the checkpoint to score.

    Raises CheckpointError that counts as a disk error, so that the run starts again.
    """
    try:
        verify(folder)
    except CheckpointError as error:
        # The next attempt does without this checkpoint.
        raise CheckpointError(str(error)) from OSError(errno.EIO, os.strerror(errno.EIO))


def _write(run: RunDir, context: TrainContext, result: dict[str, Any]) -> None:
    """Write artifacts, report and scores on rank 0; result.json last, which marks the run as finished."""
    context.leave_if_replaced()
    context.metrics_writer.flush()
    # This may take long without a heartbeat.
    context.enter(Phase.REPORT)
    context.task.export(run, context.state.model)
    context.leave_if_replaced()
    _report(run, result)
    context.leave_if_replaced()
    _record_scores(run, context, result["metrics"])
    metrics = {split: json_numbers(each) for split, each in result["metrics"].items()}
    context.leave_if_replaced()
    write_json(run.result, {**result, "metrics": metrics})


def _score(run: RunDir, context: TrainContext, stop: Stop, split: str, step: int) -> dict[str, float]:
    context.enter(Phase.EVALUATION)
    result, metrics = score_split(context, stop, split)
    context.leave_if_replaced()
    if split == "test":
        context.metrics_writer.evaluation(split, step, metrics)
    if result is not None:
        context.task.write_report(run, split, result)
    return metrics


def _train_metrics(run: RunDir, epochs: float) -> dict[str, float]:
    """Means over the last whole epoch of training; the weights changed during it."""
    found = trained(by_epoch(read_json_lines(run.metrics)), epochs)
    return dict(found.training) if found else {}


def _record_scores(run: RunDir, context: TrainContext, metrics: Mapping[str, Mapping[str, float]]) -> None:
    """Add the scores to the results of all runs on the prepared data. A failure does not fail the run."""
    experiment, prepared = context.experiment, context.task.prepared
    if prepared is None or not keeps_results(prepared):
        return
    problem = record_result(
        prepared,
        Result(
            run=run.run_id,
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            name=experiment.name,
            model=experiment.model.kind,
            task=experiment.task.kind,
            seed=experiment.seed,
            step=context.state.progress.step,
            metrics=metrics,
        ),
    )
    if problem is not None:
        note_event(run, "results_not_recorded", reason=problem)


def _report(run: RunDir, result: dict[str, Any]) -> None:
    # matplotlib is slow to import, and only rank 0 draws.
    from toolkit.report.rendering.writing import write_final_report

    write_final_report(run, result)
