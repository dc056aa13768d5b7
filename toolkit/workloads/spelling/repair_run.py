"""The run of `tokenization_repair` with the model that `tokenization_repair_plus` uses. No torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from toolkit.config import load_resolved
from toolkit.config.schema import Experiment
from toolkit.errors import DataError
from toolkit.run.run_dir import RunDir
from toolkit.training.warm_start.find import Coming, find_weights
from toolkit.workloads.spelling.files import SpellingFiles

_TASK = "tokenization_repair"


def check_repair_run(experiment: Experiment, coming: Coming = None) -> None:
    """Raise DataError if the run that `model.repair_run` names does not exist or has another task.

    coming   experiments of runs that finish before this run begins, by the folders of their runs
    """
    name = experiment.model.repair_run
    if (first := (coming or {}).get(Path(name).resolve())) is not None:
        _check_task(Path(name), first)
    else:
        repair_experiment(name)
        find_weights("model.repair_run", name, experiment.policy.waits_for_jobs)


def repair_experiment(name: str) -> Experiment:
    """Return the experiment of the run, or in the file, that `model.repair_run` names. Raises DataError."""
    path = Path(name)
    config = path if path.is_file() else RunDir(path).config
    if not config.is_file():
        raise DataError(f"model.repair_run: {path} is not a run; expected the folder of a run of {_TASK}")
    experiment = load_resolved(config)
    _check_task(path, experiment)
    return experiment


def without_origin(run: RunDir, experiment: Experiment) -> Experiment:
    """Return a run's experiment with the kept experiment instead of the run in `model.repair_run`."""
    kept = SpellingFiles(run).repair_experiment
    if not kept.is_file():
        return experiment
    return replace(experiment, model=replace(experiment.model, repair_run=str(kept)))


def _check_task(path: Path, experiment: Experiment) -> None:
    if (kind := experiment.task.kind) != _TASK:
        raise DataError(f"model.repair_run: {path} is a run of {kind}, expected one of {_TASK}")
