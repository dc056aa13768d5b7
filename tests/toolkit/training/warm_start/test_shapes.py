"""The shapes of a model under all its tensor names, computed without its values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_model

from tests.toolkit.support.tiny import tiny
from toolkit.checkpoint.loading.shapes import misfit, read_shapes
from toolkit.config import Experiment, to_yaml
from toolkit.files import read_json
from toolkit.task import task_class
from toolkit.training.warm_start.shapes import main

Make = Callable[[Path], Experiment]


@pytest.fixture
def made() -> Make:
    """Makes a small experiment with its data in a folder."""
    return tiny


def test_reported_shapes_equal_those_of_the_saved_model(tmp_path: Path, made: Make) -> None:
    experiment = made(tmp_path)
    task = task_class(experiment)(experiment)
    save_model(task.model(), str(tmp_path / "model.safetensors"))
    (tmp_path / "config.yaml").write_text(to_yaml(experiment))
    main(tmp_path / "config.yaml", tmp_path / "answer.json")
    told = [(names, tuple(shape)) for names, shape in read_json(tmp_path / "answer.json")]
    found = read_shapes(tmp_path / "model.safetensors")
    assert misfit(found, told) == ""
    assert len(told) == len(found)
    assert torch.get_default_device().type == "cpu"
