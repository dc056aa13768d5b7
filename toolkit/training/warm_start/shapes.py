"""Names and shapes of the tensors of a model: python -P -m toolkit.training.warm_start.shapes CONFIG ANSWER

Writes them as JSON for an experiment whose data are prepared. The model is made on torch's meta device: that
needs no memory, and does not read pretrained weights.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from toolkit.checkpoint.loading.load import tensors_of
from toolkit.config import load_to_run
from toolkit.files import write_json
from toolkit.task import task_class


def main(config: Path, answer: Path) -> None:
    """Write the tensors of an experiment's model. Raises StkError."""
    experiment = load_to_run(config)
    task = task_class(experiment)(experiment)
    with torch.device("meta"):
        model = task.model()
    write_json(answer, tensors_of(model))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
