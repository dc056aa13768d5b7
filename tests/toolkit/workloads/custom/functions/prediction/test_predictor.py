"""Rows without a function `sample`, and what `predict` may return."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from toolkit.analysis.prediction.predictor import UnfitRow
from toolkit.errors import UserError
from toolkit.run.run_dir import RunDir
from toolkit.training.numerics.rng import seed_everything
from toolkit.workloads.custom.functions.prediction.predictor import FunctionsPredictor
from toolkit.workloads.custom.functions.sections.classes import FunctionsTask

FUNCTIONS = """\
import torch

def model(): return torch.nn.Identity()
def data(split): return None
def step(model, batch): return {"loss": batch}
"""


pytestmark = pytest.mark.usefixtures("empty_folder")


def predictor(code: str) -> FunctionsPredictor:
    """The predictor of a run that keeps this code beside the three functions."""
    kept = Path("run", "code", "project")
    kept.mkdir(parents=True, exist_ok=True)
    (kept / "own_code.py").write_text(FUNCTIONS + code)
    experiment: Any = SimpleNamespace(task=FunctionsTask(module="own_code.py"), model=None, seed=3)
    return FunctionsPredictor(RunDir(Path("run").absolute()), experiment)


def predicted(found: FunctionsPredictor, *rows: Any) -> list[Any]:
    settings: Any = None
    samples = [found.sample(row) for row in rows]
    return found.predict(torch.nn.Identity(), samples, settings, torch.device("cpu"))


def test_numbers_become_a_tensor_of_floats() -> None:
    found = predictor("def predict(model, batch): return model(batch) / 2\n")
    assert found.sample([1, 2]).dtype is torch.float32
    assert predicted(found, 1, 3.0) == [0.5, 1.5]
    assert predicted(found, [1, 2], [3, 4]) == [[0.5, 1.0], [1.5, 2.0]]


def test_random_numbers_of_own_code_are_those_of_the_seed() -> None:
    code = "OFFSET = torch.rand(1)\ndef predict(model, batch): return batch + OFFSET\n"
    torch.manual_seed(1)
    found = predicted(predictor(code), 0)
    # Those of the caller are as before.
    assert torch.equal(torch.rand(1), torch.rand(1, generator=torch.Generator().manual_seed(1)))
    seed_everything(3)
    assert found == torch.rand(1).tolist()


@pytest.mark.parametrize("row", ["1", None, True, {"x": "1"}, [[1], [2, 3]], ["1"]])
def test_rows_of_other_types_need_a_sample_function(row: Any) -> None:
    found = predictor("def predict(model, batch): return batch\n")
    with pytest.raises(UnfitRow, match=r"expected a number or a list of numbers.*def sample\(row\)"):
        found.sample(row)


SAMPLE = "def sample(row):\n    return torch.tensor(row).float()\n"


def test_row_that_sample_cannot_read_is_reported_with_the_line_of_the_code() -> None:
    found = predictor(SAMPLE + "def predict(model, batch): return batch\n")
    with pytest.raises(UnfitRow, match=r"own_code\.py:7: sample failed \(.*, given 'x'"):
        found.sample("x")


def test_rows_that_do_not_fit_into_one_batch_are_reported() -> None:
    found = predictor(SAMPLE + "def predict(model, batch): return batch\n")
    with pytest.raises(UserError, match="cannot be put into one batch"):
        predicted(found, [1, 2], [3])


def test_samples_of_unequal_sizes_go_through_collate() -> None:
    code = "def collate(samples): return [len(each) for each in samples]\n"
    found = predictor(code + "def predict(model, batch): return torch.tensor(batch)\n")
    assert predicted(found, [1, 2, 3], [4]) == [3, 1]


@pytest.mark.parametrize(
    "returned, expected",
    [
        ("[1, 0.5]", [1.0, 0.5]),
        ("[batch[0], 2.5]", [1.0, 2.5]),
        ("[[1], [2.5, 3]]", [[1.0], [2.5, 3.0]]),
        ("[batch, torch.arange(0)]", [[1.0, 2.0], []]),
        ("tuple(batch[:n] for n in (1, 2))", [[1.0], [1.0, 2.0]]),
        ("[batch[:1], batch[1:]]", [[1.0], [2.0]]),
        ("[[2], []]", [[2], []]),
        ("[[], []]", [[], []]),
    ],
)
def test_predict_may_return_a_list_of_numbers_or_of_lists(returned: str, expected: list[Any]) -> None:
    found = predictor(f"def predict(model, batch): return {returned}\n")
    # The text of JSON distinguishes 2 from 2.0.
    assert json.dumps(predicted(found, 1, 2)) == json.dumps(expected)


@pytest.mark.parametrize(
    "returned, said",
    [
        ("batch[:1]", "predict returned 1 values or rows, expected"),
        ("batch.sum()", "predict returned Tensor, expected"),
        ("['a', 'b']", "predict returned list, expected"),
        ("[[1], 2]", "predict returned list, expected"),
        ("[]", "predict returned list, expected"),
        ("[[1]]", "predict returned 1 values or rows, expected"),
        ("batch[0][0]", r"own_code.py:6: predict failed \(IndexError: .*Define it so that a batch is as in"),
    ],
)
def test_invalid_results_and_failures_of_predict_are_reported(returned: str, said: str) -> None:
    found = predictor(f"def predict(model, batch): return {returned}\n")
    with pytest.raises(UserError, match=said):
        predicted(found, 1, 2)


def test_missing_predict_function_is_reported_with_advice() -> None:
    with pytest.raises(UserError, match=r"own_code.py has no function predict: add it"):
        predicted(predictor(""), 1)
