"""What an experiment takes from runs before it: weights to begin with, a model to build on.

Imports nothing slow, for a login node looks before anything is submitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolkit.config import load_resolved
from toolkit.config.kinds import TokenizationRepairPlus
from toolkit.config.schema import Experiment
from toolkit.errors import DataError
from toolkit.files import read_json
from toolkit.rundir import MANIFEST, WEIGHTS, RunDir

#: The task whose models others build on.
_REPAIR = "tokenization_repair"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Where weights lie.

    file        safetensors
    checkpoint  folder whose manifest has the checksum of the file; None for a file by itself
    """

    file: Path
    checkpoint: Path | None


def check_earlier(experiment: Experiment, coming: Mapping[Path, Experiment] | None = None) -> None:
    """Raise DataError where what an experiment takes from earlier runs is not there.

    coming   runs by their folders, which will have finished when this one begins

    A run that has not finished is one where the job waits for other jobs: it may have by then.
    """
    waits, coming = bool(experiment.resources.dependency), coming or {}
    begins_with = experiment.train.start_from_checkpoint
    if begins_with is not None and Path(begins_with).resolve() not in coming:
        find_weights("train.start_from_checkpoint", begins_with, waits)
    if isinstance(experiment.model, TokenizationRepairPlus):
        name = experiment.model.repair_run
        if (first := coming.get(Path(name).resolve())) is not None:
            _check_repairs(Path(name), first)
        else:
            repair_experiment(name)
            find_weights("model.repair_run", name, waits)


def find_weights(key: str, name: str, waits: bool = False) -> Weights:
    """Find the weights that a key names: a run's best ones, those of a checkpoint, or a file.

    waits  whether a run may be unfinished, whose best weights are not known yet
    Raises DataError.
    """
    path = Path(name)
    if (path / "config.yaml").is_file():
        return _of_checkpoint(key, _best(key, RunDir(path), waits))
    if (path / MANIFEST).is_file():
        return _of_checkpoint(key, path)
    if path.is_file():
        return Weights(file=path, checkpoint=None)
    what = "holds neither a run nor a checkpoint" if path.is_dir() else "is not there"
    raise DataError(
        f"{key}: {path} {what}; expected the folder of a run, one of its checkpoints, or a {WEIGHTS}"
    )


def _of_checkpoint(key: str, folder: Path) -> Weights:
    return Weights(file=folder / WEIGHTS, checkpoint=folder)


def _best(key: str, run: RunDir, waits: bool) -> Path:
    result = read_json(run.result)
    if result is None:
        if waits:
            return run.best
        raise DataError(
            f"{key}: {run.path} has not finished, so its best weights are not known; wait for it "
            "(a job does that with resources.dependency)"
        )
    folder = run.checkpoint(int(result["best"]["step"]))
    if not folder.is_dir():
        raise DataError(f"{key}: {folder}, the best checkpoint of that run, is gone; name another run")
    return folder


def repair_experiment(name: str) -> Experiment:
    """Return the experiment of the run that `model.repair_run` names. Raises DataError."""
    run = RunDir(Path(name))
    if not run.config.is_file():
        raise DataError(f"model.repair_run: {run.path} is no run; expected the folder of a run of {_REPAIR}")
    experiment = load_resolved(run.config)
    _check_repairs(run.path, experiment)
    return experiment


def _check_repairs(path: Path, experiment: Experiment) -> None:
    if (kind := experiment.task.kind) != _REPAIR:
        raise DataError(f"model.repair_run: {path} is a run of {kind}, expected one of {_REPAIR}")
