"""Score a finished run again: its best weights on its own data, or on another file.

A separate process, or several that torchrun or our launcher describes, with the run's own code:

    python -P -m toolkit.analysis.reevaluate RUN_DIR '{"file": …}'

writes one JSON document to standard output (rank 0), and the evaluation's folder into the run's.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from toolkit.checkpoint.finished import best_checkpoint, finished_result
from toolkit.checkpoint.loading.load import load_weights
from toolkit.checkpoint.verification import read_manifest, verify
from toolkit.config import load_on_file, load_to_run, to_yaml
from toolkit.config.identity import identity
from toolkit.config.schema import Experiment
from toolkit.data.order.batches import evaluation_plan
from toolkit.data.prepared.lookup import changed_sources
from toolkit.distributed.process_group import Group, join
from toolkit.errors import DataError, UserError
from toolkit.files import crc32, json_numbers, read_json, temporary_folder, write_atomic, write_json
from toolkit.run.run_dir import MANIFEST, RunDir
from toolkit.system.process_main import process_main, write_answer
from toolkit.system.world import World
from toolkit.task import Evaluation, Task, task_class
from toolkit.training.evaluation import evaluate, metrics_on_all_ranks
from toolkit.training.numerics.arithmetic import agreed_precision, autocast_dtype, set_arithmetic
from toolkit.training.numerics.rng import seed_everything
from toolkit.training.output.progress_display import transient_bar
from toolkit.workload import Progress, silent

#: Name of the split of another file in artifacts and reports.
_SPLIT = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The input of an evaluation, and the folder of its results.

    file       another file; None for the run's own data
    overrides  key=value settings for reading that file
    split      of the run's own data; None: the test set, or the validation set without one
    output     folder of the evaluation; None: in the run's
    meeting    folder for the rendezvous of several processes
    """

    file: str | None = None
    overrides: Sequence[str] = ()
    split: str | None = None
    output: str | None = None
    meeting: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """A task and its split to be scored, their experiment, and the name of the evaluation."""

    task: Task
    experiment: Experiment
    split: str
    name: str


def rescore(run: RunDir, world: World, request: Request, progress: Progress) -> dict[str, Any]:
    """Score the best weights of a finished run; return the content of the evaluation's metrics.json.

    An existing evaluation is reused. Collective. Raises UserError if the run has not
    finished or the data do not fit, CheckpointError if its best checkpoint is lost or damaged.
    """
    result = finished_result(run)
    experiment = load_to_run(run.config)
    set_arithmetic(experiment)
    # The processes meet on this machine, on the available kind of device.
    device = "auto" if experiment.train.device == "cuda" else experiment.train.device
    train = replace(experiment.train, rendezvous="auto", device=device)
    with temporary_folder() as own:
        meeting = RunDir(Path(request.meeting or own))
        with join(meeting, world, train) as group:
            checkpoint = _best(run, group)
            subject = _of_kept(run, experiment, request, meeting, group, progress)
            if subject is None:
                kind = task_class(experiment)
                # Prepared data that are gone are prepared again.
                group.main_first(lambda: kind.prepare(experiment, progress if group.world.is_main else None))
                task = kind(experiment)
                _check_data(run, experiment, checkpoint, task)
                subject = _subject(run, task, experiment, request, group, progress)
            return _score(run, result, checkpoint, subject, request, group, progress)


def _best(run: RunDir, group: Group) -> Path:
    """The best checkpoint, verified by rank 0. Raises CheckpointError. Collective."""
    folder = best_checkpoint(run)
    if group.world.is_main:
        verify(folder)
    group.barrier()
    return folder


def _check_data(run: RunDir, experiment: Experiment, checkpoint: Path, task: Task) -> None:
    """Raise DataError if the data of a task are not the run's training data."""
    saved = read_manifest(checkpoint).get("data")
    if saved != task.fingerprint:
        others = changed_sources(experiment.data, saved)
        raise DataError(
            f"the training data of {run.run_id} have changed since{others}, so labels and token ids may "
            "differ from the learnt ones: restore the data that it was trained on"
        )


def _of_kept(
    run: RunDir, experiment: Experiment, request: Request, meeting: RunDir, group: Group, progress: Progress
) -> _Subject | None:
    """Another file, read with the run's kept artifacts; None if the run's data are needed. Collective."""
    make = getattr(task_class(experiment), "of_kept", None)
    if request.file is None or make is None:
        return None
    on_file = load_on_file(run.config, Path(request.file), request.overrides)
    data, own = on_file.data, experiment.data.prepared_dir
    if data.prepared_dir == own and not Path(own).expanduser().is_dir():
        # The run's folder of prepared data is gone: this evaluation has its own.
        data = replace(data, prepared_dir=str(meeting.path / "prepared"))
    named = {each.partition("=")[0].strip() for each in request.overrides}
    made: list[Task | None] = []
    group.main_first(lambda: made.append(make(run, experiment, data, named, progress)))
    task = made[0] if made else make(run, experiment, data, named, silent)
    if task is None:
        return None
    return _Subject(task=task, experiment=on_file, split=_SPLIT, name=Path(request.file).stem)


def _subject(
    run: RunDir, task: Task, experiment: Experiment, request: Request, group: Group, progress: Progress
) -> _Subject:
    if request.file is not None:
        experiment = load_on_file(run.config, Path(request.file), request.overrides)
        made: list[Task] = []
        group.main_first(lambda: made.append(task.on(experiment.data, progress)))
        other = made[0] if made else task.on(experiment.data)
        return _Subject(task=other, experiment=experiment, split=_SPLIT, name=Path(request.file).stem)
    split = request.split or next(name for name in ("test", "validation") if name in task.splits)
    if split not in task.splits:
        raise UserError(f"{run.run_id} has no split {split!r}: its data have {', '.join(task.splits)}")
    return _Subject(task=task, experiment=experiment, split=split, name=split)


def _score(
    run: RunDir,
    result: dict[str, Any],
    checkpoint: Path,
    subject: _Subject,
    request: Request,
    group: Group,
    progress: Progress,
) -> dict[str, Any]:
    """Score the subject, unless its evaluation exists. Collective; the document is complete on rank 0."""
    key = _key(checkpoint, subject)
    target = RunDir(Path(request.output)) if request.output else run.evaluation(f"{subject.name}-{key}")
    is_own = request.output is None
    stored = group.agree(_stored(target, key, is_own=is_own) if group.world.is_main else None)
    if stored is not None:
        return {**stored, "folder": str(target.path), "found": True}
    if group.world.is_main:
        _make_folder(target)
    # A model may draw constants that no checkpoint holds.
    seed_everything(subject.experiment.seed)
    model = subject.task.model().to(group.device)
    load_weights(checkpoint, model)
    begun = time.monotonic()
    evaluation = _evaluate(model, subject, group, progress)
    document = {
        "state": "evaluated",
        "run_id": run.run_id,
        "step": result["best"]["step"],
        "best": result["best"],
        "data": request.file,
        "split": subject.split,
        "samples": len(subject.task.splits[subject.split]),
        "summary": subject.task.summary,
        "metrics": {
            subject.split: json_numbers(metrics_on_all_ranks(subject.task, subject.split, evaluation, group))
        },
        "key": key,
        "score_s": round(time.monotonic() - begun, 3),
    }
    if evaluation is not None:
        _write(target, subject, evaluation, document)
    group.barrier()
    return {**document, "folder": str(target.path), "found": False}


def _key(checkpoint: Path, subject: _Subject) -> str:
    """Eight hex digits that change with the weights, the data, and how these are read."""
    task, experiment = subject.task, subject.experiment
    facts = (crc32(checkpoint / MANIFEST), task.fingerprint, subject.split, identity(experiment))
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:8]


def _stored(target: RunDir, key: str, *, is_own: bool) -> dict[str, Any] | None:
    """The document of an earlier evaluation of the same weights and data; None without one.

    is_own  whether the folder's name contains the key, so that nothing else can be in it
    Raises UserError if the folder holds something else.
    """
    found: Any = None
    with suppress(ValueError):
        found = read_json(target.scores)
    if isinstance(found, dict) and "key" in found:
        return found if found["key"] == key else None
    if not is_own and target.path.is_dir() and any(target.path.iterdir()):
        raise UserError(
            f"{target.path} holds something other than a whole evaluation: empty it, or give another folder"
        )
    return None


def _evaluate(model: nn.Module, subject: _Subject, group: Group, progress: Progress) -> Evaluation | None:
    settings = subject.experiment.evaluation
    plan = evaluation_plan(settings, subject.task.splits[subject.split].lengths)
    batches = -(-plan.steps // group.world.size)
    done = itertools.count(1)
    return evaluate(
        subject.task,
        model,
        subject.split,
        group,
        settings,
        autocast_dtype(agreed_precision(subject.experiment.train.precision, group), group.device),
        on_batch=lambda: progress("scoring", next(done), batches),
    )


def _make_folder(target: RunDir) -> None:
    """Make an evaluation's folder before anything is scored. Raises UserError if it cannot be written."""
    try:
        target.path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target.path):
            pass
    except OSError as error:
        raise UserError(
            f"cannot write into {target.path}: {error.strerror}. --output chooses another folder"
        ) from None


def _write(target: RunDir, subject: _Subject, evaluation: Evaluation, document: dict[str, Any]) -> None:
    """Write the evaluation's folder; metrics.json last."""
    # Existing files are incomplete, or, in a folder that the user named, of other weights or data.
    for folder in (target.artifacts, target.report):
        shutil.rmtree(folder, ignore_errors=True)
    target.scores.unlink(missing_ok=True)
    write_atomic(target.config, to_yaml(subject.experiment))
    subject.task.write_report(target, subject.split, evaluation)
    write_json(target.scores, document)


def main(argv: Sequence[str]) -> int:
    """Score a run for another program; return the exit status."""

    def work() -> dict[str, Any]:
        run, request = RunDir(Path(argv[0])), Request(**json.loads(argv[1]))
        with transient_bar() as show:
            return rescore(run, World.from_environment(), request, show)

    return write_answer(work)


if __name__ == "__main__":
    process_main(main)
