"""The end of a run: score the best weights, write the artifacts and the report, then result.json."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from toolkit.checkpoint.carrying import carry
from toolkit.checkpoint.store import load_weights, verify
from toolkit.data.results import Result, record_result
from toolkit.evaluate import evaluate
from toolkit.events import note_event
from toolkit.files import read_json_lines, write_json
from toolkit.rundir import RunDir
from toolkit.training import Training


def finish(run: RunDir, training: Training, attempts: int, seconds: float) -> None:
    """Score validation and test with the best weights and close the run. Collective."""
    progress = training.state.progress
    best_step = progress.step if progress.best_step is None else progress.best_step
    folder = run.checkpoint(best_step)
    if training.group.world.is_main:
        verify(folder)
    # The others wait here for rank 0, which alone has written the checkpoint.
    training.group.barrier()
    carry(folder, training.group)
    load_weights(folder, training.state.model)
    metrics = {"train": _last_train_metrics(run)}
    for split in _final_splits(training):
        metrics[split] = _score(run, training, split, best_step)
    if training.group.world.is_main:
        training.recorder.flush()
        result = {
            "state": "finished",
            "step": progress.step,
            "epoch": training.calendar.epoch(progress.step),
            "metrics": metrics,
            "best": {
                "step": best_step,
                "metric": training.experiment.evaluation.metric,
                "value": progress.best_value,
            },
            "attempts": attempts,
            "seconds": round(seconds, 3),
        }
        # What may take long and gives no sign of life.
        training.enter("report")
        training.task.export(run, training.state.model)
        _report(run, result)
        _record(run, training, metrics)
        write_json(run.result, result)


def _final_splits(training: Training) -> list[str]:
    wanted = ["validation", "test"] if training.experiment.evaluation.test else ["validation"]
    return [split for split in wanted if split in training.task.splits]


def _score(run: RunDir, training: Training, split: str, step: int) -> dict[str, float]:
    result = evaluate(
        training.task,
        training.state.model,
        split,
        training.group,
        training.experiment.evaluation,
        training.precision,
        on_batch=training.beat,
    )
    metrics = training.task.metrics(split, result)
    if split == "test":
        training.recorder.evaluation(split, step, metrics)
    if training.group.world.is_main:
        training.task.write_report(run, split, result)
    return metrics


def _last_train_metrics(run: RunDir) -> dict[str, Any]:
    last: dict[str, Any] = {}
    for line in read_json_lines(run.metrics):
        if line["split"] == "train":
            last = line
    return {name: value for name, value in last.items() if name not in ("time", "step", "epoch", "split")}


def _record(run: RunDir, training: Training, metrics: Mapping[str, Mapping[str, float]]) -> None:
    """Add the scores to the prepared data, where the runs of a study meet. A run never fails for that."""
    experiment = training.experiment
    problem = record_result(
        training.task.prepared,
        Result(
            run=run.run_id,
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            name=experiment.name,
            model=experiment.model.kind,
            task=experiment.task.kind,
            seed=experiment.seed,
            step=training.state.progress.step,
            metrics=metrics,
        ),
    )
    if problem is not None:
        note_event(run, "results_not_recorded", reason=problem)


def _report(run: RunDir, result: dict[str, Any]) -> None:
    """Write the report. It can be made again at any time, so its failure does not fail the run."""
    from toolkit.report import write_report  # matplotlib is slow to import, and only rank 0 draws

    try:
        write_report(run, result, thorough=False)
    except Exception as error:
        note_event(run, "report_failed", reason=f"{type(error).__name__}: {error}")
