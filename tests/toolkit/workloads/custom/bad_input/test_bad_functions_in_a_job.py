"""Errors in own functions that only a job can find are reported with file and line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.toolkit.workloads.custom.bad_input.conftest import ADDED, DATA, MODEL, STEP, edit
from tests.toolkit.workloads.moved_run import ended
from toolkit.config import load
from toolkit.errors import UserError
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json, write_json
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import find_runs
from toolkit.testing.contract import evaluated, new_model, open_task


def _start() -> None:
    """Use task and model once for each purpose, as a job does at its start."""
    task = open_task(load(Path("mine.yaml")))
    model = new_model(task)
    task.loss(model, task.collate("train", np.arange(3), torch.device("cpu")))
    evaluated(task, model, "validation")


def _said_at_start() -> str:
    with pytest.raises(UserError) as caught:
        _start()
    assert caught.value.exit_code == ExitCode.WRONG_INPUT
    return str(caught.value)


_SET = "TensorDataset(x, (x[:, 0] > 0).long())"
_SHRINKING = "    with torch.no_grad():\n        model[0].weight.mul_(0.9)\n    x, y = batch"
_FIRST = "nn.Linear(4, width),"
_LOSS = 'nn.functional.cross_entropy(model(x), y, reduction="none")'
_END = f"{_LOSS}}}\n"
_LENGTHS = f"{_END}\n\ndef lengths(split):\n    return"
_PREDICT = f"{_END}\n\ndef predict(model, batch):\n    return"


@pytest.mark.parametrize(
    "old, new, line, right",
    [
        ("import torch\n", "import torch, nothing_there\n", 1, "nothing_there"),
        ("import torch\n", "import torch, sys; sys.exit('needs a GPU')\n", 1, "SystemExit: needs a GPU"),
        ("nn.Sequential(", "(", MODEL, "def model(hidden: int = 64): return MyModel(hidden)"),
        (_FIRST, "nn.Embedding(4, width, sparse=True),", MODEL, "leave out sparse=True"),
        (_FIRST, "nn.LazyLinear(width),", MODEL, "call the new model on an example"),
        (_FIRST, f"{_FIRST} nn.SyncBatchNorm(width),", MODEL, "use BatchNorm"),
        (_FIRST, f"nn.utils.parametrizations.spectral_norm({_FIRST[:-1]}),", MODEL, "0.parametrizations"),
        ("    x, y = batch", _SHRINKING, MODEL, "step changes 0.weight"),
        (_SET, f"iter({_SET})", DATA, "def data(split): return MyDataset(split)"),
        (_SET, f"torch.utils.data.DataLoader({_SET})", DATA, "def data(split): return MyDataset(split)"),
        (_SET, f"None if split == 'validation' else {_SET}", DATA, "only test may be None"),
        (_SET, "{'a': x[0]}", DATA, "whose keys are not 0 to 0"),
        (_SET, "[]", DATA, "without samples"),
        (_SET, "[torch.ones(n, 2) for n in range(1, 41)]", DATA, "collate(samples)"),
        (', reduction="none"', "", STEP, 'reduction="none" makes one value per sample'),
        (_LOSS, "3.0", STEP, 'reduction="none" makes one value per sample'),
        (_LOSS, "torch.zeros(len(x))", STEP, "compute it from model("),
        ('{"loss":', '0 or {"los":', STEP, 'def step(model, batch): return {"loss"'),
        (f"{_LOSS}}}", f'{_LOSS}, "accuracy": 1.0}}', STEP, '"accuracy": scores.argmax(1) == labels'),
        (f"{_LOSS}}}", f'{_LOSS}, "accuracy": None}}', STEP, '"accuracy": scores.argmax(1) == labels'),
        (f"{_LOSS}}}", f'{_LOSS}, "weights": [1.0]}}', STEP, "expected a tensor"),
        ('{"loss":', '{} or {"lr": y, "loss":', STEP, "the metric lr, a name that metrics.jsonl uses"),
        (_END, f"{_LENGTHS} [1]\n", ADDED, "def lengths(split): return"),
        (_END, f"{_LENGTHS} None and 1 or 'abc'\n", ADDED, "def lengths(split): return"),
        (_END, f"{_PREDICT} 3\n", ADDED, "(model, batch): return one_value"),
        (_END, f"{_PREDICT} torch.zeros(2)\n", ADDED, "(model, batch): return one_value"),
    ],
    ids=[
        "an import", "an exit", "no model", "sparse gradients", "a lazy layer", "a norm over processes",
        "a buffer that changes", "a weight that changes", "no length", "a loader", "no validation",
        "keys", "no samples", "samples of unequal shapes",
        "a mean for a loss", "a number for a loss", "a loss without the model", "no loss",
        "a mean for a metric", "nothing for a metric", "a list of weights", "a name",
        "too few lengths", "a text for lengths", "a number for predictions", "too few predictions",
    ],
)  # fmt: skip
def test_error_at_job_start_is_reported_with_its_line(old: str, new: str, line: int, right: str) -> None:
    edit("mine.py", old, new)
    said = _said_at_start()
    assert f"mine.py:{line}: " in said
    assert right in said


def test_job_with_an_invalid_step_exits_with_wrong_input() -> None:
    edit("mine.py", _LOSS, "3.0")
    done = ended("run", "mine.yaml")
    assert done.returncode == ExitCode.WRONG_INPUT
    assert f"mine.py:{STEP}: the loss is of type float" in done.stderr
    assert "Traceback" not in done.stderr
    assert not [*find_runs(Path("experiments"))]


def test_fresh_start_with_an_error_puts_the_finished_run_back() -> None:
    run = create_run(load(Path("mine.yaml")), Path("experiments").absolute())
    write_json(run.result, {"step": 5})
    edit("mine.py", _SET, "3")
    assert ended("run", "mine.yaml", "--fresh").returncode == ExitCode.WRONG_INPUT
    assert read_json(run.result) == {"step": 5}
