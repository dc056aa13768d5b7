"""The weights of an earlier run from which an experiment starts.

Imports nothing slow: a login node checks this before a submission.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolkit.checkpoint.finished import best_step
from toolkit.config.schema import Experiment
from toolkit.errors import DataError, UserError
from toolkit.run.run_dir import MANIFEST, WEIGHTS, RunDir, experiment_dir

#: Runs that finish before the experiment begins: their experiments, by folder.
Coming = Mapping[Path, Experiment] | None

#: Advice if weights do not fit a model.
FIT = "Name weights of the same model for the same data, or set model and data to theirs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A file of weights.

    file        in the safetensors format
    checkpoint  folder with the manifest that has the file's checksum; None for a single file
    """

    file: Path
    checkpoint: Path | None


def check_earlier(experiment: Experiment, coming: Coming = None) -> None:
    """Raise DataError if the weights that an experiment starts from are missing.

    A run that has not finished is accepted if it is one of `coming`, or if the job waits for other jobs:
    it may have finished when the job begins.
    """
    begins_with = experiment.train.start_from_checkpoint
    if begins_with is not None and Path(begins_with).resolve() not in (coming or {}):
        find_weights("train.start_from_checkpoint", begins_with, experiment.policy.waits_for_jobs)


def run_of(path: Path) -> RunDir | None:
    """The run that a folder, a checkpoint or a file of weights belongs to."""
    folders = (path, *path.resolve().parents[:3])
    return next((run for folder in folders if (run := RunDir(folder)).config.is_file()), None)


def check_meaning(experiment: Experiment, prepared: Path | None) -> None:
    """Raise DataError if the weights of another run mean something else for this experiment's data."""
    name = experiment.train.start_from_checkpoint
    run = None if name is None else run_of(Path(name))
    if run is not None and (why := experiment.data.other_meaning(prepared, run.path)):
        raise DataError(
            f"train.start_from_checkpoint: the weights of {name} mean something else here: {why}. {FIT}; "
            "to start from them anyway, name a copy of the file outside the folder of that run"
        )


def find_weights(key: str, name: str, waits: bool = False) -> Weights:
    """Find the weights that a key names: the best ones of a run, those of a checkpoint, or a file.

    Raises DataError without any.

    waits  whether the run may be unfinished, so that its best weights are not known yet
    """
    path = Path(name)
    if (path / "config.yaml").is_file():
        folder = _best_checkpoint(key, RunDir(path), waits)
        return Weights(file=folder / WEIGHTS, checkpoint=folder)
    if (path / MANIFEST).is_file():
        return Weights(file=path / WEIGHTS, checkpoint=path)
    if path.is_file():
        return Weights(file=path, checkpoint=None)
    what = "holds neither a run nor a checkpoint" if path.is_dir() else "does not exist"
    expected = f"expected the folder of a run, one of its checkpoints, or a {WEIGHTS}"
    if (run := RunDir(experiment_dir() / path.name)).config.is_file():
        expected = f"did you mean {run.path}?"
    raise DataError(f"{key}: {path} {what}; {expected}")


def _best_checkpoint(key: str, run: RunDir, waits: bool) -> Path:
    if not run.result.exists():
        if waits:
            return run.best
        raise DataError(
            f"{key}: {run.path} has not finished, so its best weights are not known: wait for it "
            "(a job does that with resources.dependency), or name one of its checkpoints"
        )
    try:
        folder = run.checkpoint(best_step(run))
    except UserError as error:
        raise DataError(f"{key}: {error}") from None
    if not folder.is_dir():
        raise DataError(f"{key}: {folder}, the best checkpoint of that run, is gone; name another run")
    return folder
