"""Putting a checkpoint back into a model, or into a whole training state."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, load_model
from torch import nn

from toolkit.checkpoint.manifest import read_progress
from toolkit.errors import CheckpointError
from toolkit.rundir import TRAINING, WEIGHTS
from toolkit.state import TrainState


def load(folder: Path, state: TrainState) -> None:
    """Load a checkpoint into a state, in place. Says nothing of its health: verify first.

    Raises CheckpointError where it does not fit.
    """
    load_weights(folder, state.model)
    try:
        state.load_training_tensors(load_file(str(folder / TRAINING)))
        stored = read_progress(folder)
        state.progress.restore(stored["progress"])
        if stored["scaler"]:
            state.scaler.load_state_dict(stored["scaler"])
    except (SafetensorError, OSError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{folder} does not fit this experiment: {error}") from error


def load_weights(folder: Path, model: nn.Module) -> None:
    """Load the weights alone, in place. Raises CheckpointError where they do not fit."""
    load_file_of_weights(folder / WEIGHTS, model)


def load_file_of_weights(file: Path, model: nn.Module) -> None:
    """Load a file of weights, in place: all that the model has and no other. Raises CheckpointError."""
    try:
        load_model(model, str(file))
    except (SafetensorError, OSError, LookupError, RuntimeError) as error:
        raise CheckpointError(f"{file} does not fit this model: {error}") from error
