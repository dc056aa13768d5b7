"""The states of the random number generators of a process, as JSON."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

#: The states of torch's generator, CUDA's, numpy's and Python's.
RandomState = tuple[torch.Tensor, torch.Tensor | None, Any, tuple[Any, ...]]


def random_state() -> RandomState:
    """Return the states of this process."""
    cuda = torch.cuda.get_rng_state() if torch.cuda.is_available() else None
    return torch.get_rng_state(), cuda, np.random.get_state(legacy=True), random.getstate()


def as_json(state: RandomState) -> dict[str, Any]:
    """Return the states as JSON: reading it executes no code."""
    cpu, cuda, (kind, words, *rest), python = state
    return {
        "torch": cpu.tolist(),
        "cuda": None if cuda is None else cuda.tolist(),
        "numpy": [kind, np.asarray(words).tolist(), *rest],
        "python": python,
    }


def restore(state: Mapping[str, Any]) -> None:
    """Set the generators of this process to states that `as_json` returned."""
    torch.set_rng_state(torch.tensor(state["torch"], dtype=torch.uint8))
    if state["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(torch.tensor(state["cuda"], dtype=torch.uint8))
    np.random.set_state(tuple(state["numpy"]))
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
