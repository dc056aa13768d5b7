"""Loading a checkpoint into a model or a whole training state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, load_model
from torch import nn

from toolkit.checkpoint.loading.shapes import Tensors, misfit, read_shapes
from toolkit.checkpoint.state import TrainState
from toolkit.checkpoint.verification import read_progress
from toolkit.errors import CheckpointError, DataError
from toolkit.run.run_dir import TRAINING, WEIGHTS

_CHANGED = "If data or code of the run have changed, restore them, or start from scratch with --fresh"


def load(folder: Path, state: TrainState) -> None:
    """Load a checkpoint into a state, in place. Does not verify it.

    Raises CheckpointError if it does not fit.
    """
    try:
        load_weights(folder, state.model)
        state.load_training_tensors(load_file(str(folder / TRAINING)))
        stored = read_progress(folder)
        state.progress.restore(stored["progress"])
        if stored["scaler"]:
            state.scaler.load_state_dict(stored["scaler"])
    except CheckpointError as error:
        raise CheckpointError(f"{error}. {_CHANGED}") from error
    except (SafetensorError, OSError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{folder} does not fit this experiment: {error}. {_CHANGED}") from error


def has_finite_weights(folder: Path, names: Collection[str]) -> bool:
    """Whether the weights of these names in a checkpoint are intact and finite. Raises OSError."""
    try:
        with safe_open(str(folder / WEIGHTS), "pt") as weights:
            return all(weights.get_tensor(name).isfinite().all() for name in {*weights.keys()} & {*names})
    except (FileNotFoundError, SafetensorError):
        return False


def load_weights(folder: Path, model: nn.Module) -> None:
    """Load only the weights, in place. Raises CheckpointError if they do not fit."""
    load_file_of_weights(folder / WEIGHTS, model)


def load_file_of_weights(file: Path, model: nn.Module) -> None:
    """Load a file of weights, in place; its names must be exactly the model's. Raises CheckpointError."""
    try:
        load_model(model, str(file))
    except (SafetensorError, OSError, LookupError, RuntimeError) as error:
        raise CheckpointError(f"{file} does not fit this model: {_misfit(file, model) or error}") from error


def tensors_of(model: nn.Module) -> Tensors:
    """All names of each tensor of a model, and its shape."""
    state = model.state_dict(keep_vars=True)
    names = defaultdict(list)
    for name, value in state.items():
        names[id(value)].append(name)
    return [(each, tuple(state[each[0]].shape)) for each in names.values()]


def _misfit(file: Path, model: nn.Module) -> str:
    """Names and shapes that differ between a file and a model; empty if none, or if the file is damaged."""
    try:
        return misfit(read_shapes(file), tensors_of(model))
    except DataError:
        return ""
