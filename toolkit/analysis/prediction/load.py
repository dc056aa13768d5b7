"""A finished run opened for use: its model with the best weights."""

from __future__ import annotations

import contextlib
import os
import warnings
from pathlib import Path

from torch import nn

from toolkit.analysis.prediction.predictor import Predictor
from toolkit.checkpoint.finished import best_checkpoint
from toolkit.checkpoint.loading.load import load_weights
from toolkit.checkpoint.verification import read_manifest, verify
from toolkit.config import load_to_run
from toolkit.config.schema import Experiment
from toolkit.data.prepared.lookup import changed_sources
from toolkit.errors import DataError, RunNotFound
from toolkit.registry import load_code, task_kinds
from toolkit.run import folder_trust
from toolkit.run.run_dir import RunDir
from toolkit.task import task_class


def load_model(folder: str | os.PathLike[str]) -> nn.Module:
    """Load the model of a finished run: best weights, on the CPU, in evaluation mode.

    folder   of the run, also if it was moved. A task without a predictor also needs the run's data

    Your code is the run's own copy. If two runs in one process have modules of the same name, the second
    run gets those of the first, except for the file with its functions.

    Raises stk.UserError if there is no run, if it has not finished, if others may write its code, or if a
    file is missing, and stk.CheckpointError if the best checkpoint is missing or damaged.
    """
    run = RunDir(Path(folder).absolute())
    if not run.config.is_file():
        raise RunNotFound(f"{folder} is not a run's folder: it has no {run.config.name}")
    folder_trust.check_run(run)
    if not run.code.exists():
        warnings.warn(f"{run.code} is gone: today's code is used", stacklevel=2)
    # The user's functions may change the working folder, which must be restored.
    with contextlib.chdir(os.getcwd()):
        experiment = load_to_run(run.config)
        if task_kinds()[experiment.task.kind].predictor:
            return open_run(run, experiment)[1]
        return with_best_weights(_model_of_task(run, experiment), run)


def open_run(run: RunDir, experiment: Experiment) -> tuple[Predictor, nn.Module]:
    """Open a finished run whose task has a predictor. Raises as `load_model` does."""
    predictor: Predictor = load_code(task_kinds()[experiment.task.kind].predictor)(run, experiment)
    return predictor, with_best_weights(predictor.model(), run)


def with_best_weights(model: nn.Module, run: RunDir) -> nn.Module:
    """Load a finished run's best weights into its model. Raises CheckpointError if they are damaged."""
    checkpoint = best_checkpoint(run)
    verify(checkpoint)
    load_weights(checkpoint, model)
    return model.eval()


def _model_of_task(run: RunDir, experiment: Experiment) -> nn.Module:
    """A new model of a task that needs its data to build it. Raises DataError if these have changed."""
    kind = task_class(experiment)
    checkpoint = best_checkpoint(run)
    kind.prepare(experiment)
    task = kind(experiment)
    saved = read_manifest(checkpoint).get("data")
    if saved != task.fingerprint:
        others = changed_sources(experiment.data, saved)
        raise DataError(
            f"the training data of {run.run_id} have changed since{others}: restore the original data"
        )
    return task.model()
