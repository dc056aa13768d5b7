"""What one process computes on. Several GPUs cannot be had here: how torch spreads a batch is not tested."""

from __future__ import annotations

import logging
import sys
import threading
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from toolkit.config.schema import Train
from toolkit.distributed.process_group import Group
from toolkit.distributed.reduction import ExactReduction, FastReduction, Reduction
from toolkit.errors import UserError
from toolkit.system.world import World
from toolkit.training.assembly import data_parallel
from toolkit.training.assembly.data_parallel import check_parallel, wrap_data_parallel

ALONE = Group(World.single(), torch.device("cpu"))


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this process saw two GPUs; torch finds none and computes where the model is."""
    # The package's attribute of this name is a function.
    module = sys.modules["torch.nn.parallel.data_parallel"]
    monkeypatch.setattr(module, "_get_available_device_type", lambda: None)
    monkeypatch.setattr(data_parallel, "visible_devices", lambda group: 2)


@pytest.fixture(autouse=True)
def _heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="toolkit")


def test_dp_on_one_device_is_the_same_as_none_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    model = nn.Linear(2, 1)
    assert wrap_data_parallel(model, Train(parallel="dp"), ALONE) is model
    assert "train.parallel: dp on cpu is the same as none" in caplog.text


@pytest.mark.usefixtures("two_gpus")
def test_dp_uses_all_gpus_and_warns_that_one_process_per_gpu_is_faster(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = nn.Linear(2, 1)
    module = wrap_data_parallel(model, Train(parallel="dp"), ALONE)
    assert isinstance(module, nn.DataParallel)
    assert module.module.module is model
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "a process for each GPU (`stk run --gpus 2`), is faster" in record.getMessage()


class Scaled(nn.Linear):
    def forward(self, input: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return scale * super().forward(input)


@pytest.mark.usefixtures("two_gpus")
def test_a_model_under_dp_takes_keyword_arguments() -> None:
    model, inputs = Scaled(2, 3), torch.ones(4, 2)
    module: Any = wrap_data_parallel(model, Train(parallel="dp"), ALONE)
    assert torch.equal(module(inputs, scale=2.0), model(inputs, scale=2.0))


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("wanted", ["auto", "ddp", "none"])
def test_other_modes_use_one_gpu_and_report_the_idle_ones(
    caplog: pytest.LogCaptureFixture, wanted: str
) -> None:
    model = nn.Linear(2, 1)
    assert wrap_data_parallel(model, Train(parallel=wanted), ALONE) is model
    assert "training uses one of 2 GPUs: `stk run --gpus 2` uses all of them" in caplog.text


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("kind", ["exact", "fast"])
def test_gradients_under_dp_equal_those_without_it(kind: str) -> None:
    """Batch sizes are global: what is spread is a micro-batch, and the sums stay the same."""

    def gradient(train: Train) -> torch.Tensor:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        module = wrap_data_parallel(model, train, ALONE)
        reduction: Reduction = (
            ExactReduction(model, ALONE, module) if kind == "exact" else FastReduction(model, ALONE, module)
        )
        assert isinstance(reduction.module, nn.DataParallel) == (train.parallel == "dp")
        reduction.start(partial(np.zeros, 0))
        for number in range(4):
            with reduction.micro_batch(number == 3):
                reduction.module(torch.full((5, 3), float(number))).sum().backward()
        reduction.finish()
        return torch.cat([p.grad.ravel() for p in model.parameters() if p.grad is not None])

    assert torch.equal(gradient(Train(parallel="dp")), gradient(Train(parallel="none")))


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    "precision, dtype", [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_threads_of_dp_use_the_precision_of_the_run(precision: str, dtype: torch.dtype) -> None:
    module = wrap_data_parallel(nn.Linear(2, 1), Train(parallel="dp", precision=precision), ALONE)
    assert isinstance(module, nn.DataParallel)
    found: list[torch.Tensor] = []
    # A thread begins with the defaults of autocast, as those that DataParallel starts.
    thread = threading.Thread(target=lambda: found.append(module.module(torch.ones(3, 2))))
    thread.start()
    thread.join()
    assert found[0].dtype == dtype


@pytest.mark.parametrize("wanted", ["dp", "none"])
def test_dp_and_none_refuse_several_processes(wanted: str) -> None:
    check_parallel(wanted, 1)
    with pytest.raises(UserError, match=f"train.parallel is {wanted}, .* but 2 were started: .*--procs 1"):
        check_parallel(wanted, 2)


@pytest.mark.parametrize("wanted", ["auto", "ddp"])
def test_auto_and_ddp_accept_any_number_of_processes(wanted: str) -> None:
    check_parallel(wanted, 1)
    check_parallel(wanted, 8)
