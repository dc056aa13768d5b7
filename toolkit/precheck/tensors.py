"""Names and shapes of a model's tensors, from a child process that imports torch."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from toolkit.checkpoint.shapes import Tensors
from toolkit.config import to_yaml
from toolkit.config.schema import Experiment
from toolkit.files import read_json

#: Seconds for the child process: it imports torch, and often transformers.
_PATIENCE_S = 120.0
#: By the settings that decide them: the runs of a sweep often share them.
_known: dict[str, Tensors | None] = {}


def tensors_of_model(experiment: Experiment) -> Tensors | None:
    """Return names and shapes, for prepared data; None if the model cannot be made."""
    key = repr((experiment.task, experiment.data, experiment.model))
    if key not in _known:
        _known[key] = _asked(experiment)
    return _known[key]


def _asked(experiment: Experiment) -> Tensors | None:
    with tempfile.TemporaryDirectory() as folder:
        config, answer = Path(folder, "config.yaml"), Path(folder, "answer.json")
        config.write_text(to_yaml(experiment), encoding="utf-8")
        command = [sys.executable, "-P", "-m", "toolkit.training.warm_start.shapes", str(config), str(answer)]
        try:
            subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_PATIENCE_S
            )
        except subprocess.SubprocessError:
            # The run itself will report why.
            return None
        return [(names, tuple(shape)) for names, shape in read_json(answer)]
