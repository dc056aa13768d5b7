"""When the model of a run is compiled with torch.compile."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters

from toolkit.config.schema import Train
from toolkit.distributed.process_group import Group
from toolkit.system.world import World
from toolkit.training.assembly import choose_reduction
from toolkit.training.assembly.choose_reduction import compile_model, is_compiled, why_not_compiled

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
MODEL = nn.Linear(1, 1)
pytestmark = pytest.mark.usefixtures("gpu")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were one for which Triton, which is installed with a compiler, makes kernels."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    monkeypatch.setattr(choose_reduction, "find_spec", lambda name: object())
    monkeypatch.setenv("CC", "gcc")


def test_a_gpu_compiles_the_model_unless_deterministic_off_or_dp() -> None:
    assert not why_not_compiled(MODEL, Train(deterministic=False), CUDA)
    assert "deterministic" in why_not_compiled(MODEL, Train(), CUDA)
    assert "off" in why_not_compiled(MODEL, Train(deterministic=False, compile="off"), CUDA)
    assert "dp" in why_not_compiled(MODEL, Train(deterministic=False, parallel="dp"), CUDA)


def test_an_old_gpu_and_a_cpu_do_not_compile_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "CPU" in why_not_compiled(MODEL, Train(deterministic=False), CPU)
    assert not why_not_compiled(MODEL, Train(deterministic=False, compile="on"), CPU)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (6, 1))
    assert "this GPU" in why_not_compiled(MODEL, Train(deterministic=False), CUDA)


def test_a_convolution_over_texts_is_compiled_only_if_requested() -> None:
    model = nn.Sequential(nn.Embedding(2, 1), nn.Conv1d(1, 1, 2))
    assert "convolution" in why_not_compiled(model, Train(deterministic=False), CUDA)
    assert not why_not_compiled(model, Train(deterministic=False, compile="on"), CUDA)


def test_models_are_not_compiled_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose_reduction, "find_spec", lambda name: None)
    assert "Triton" in why_not_compiled(MODEL, Train(deterministic=False), CUDA)


@pytest.mark.parametrize("found, is_enough", [("gcc", True), ("clang", True), ("", False)])
def test_models_are_not_compiled_without_a_c_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: str, is_enough: bool
) -> None:
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    if found:
        (tmp_path / found).touch(mode=0o755)
    assert ("C compiler" in why_not_compiled(MODEL, Train(deterministic=False), CUDA)) != is_enough


class Doubled(nn.Sequential):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = 2 * super().forward(inputs)
        return found


@pytest.mark.parametrize("kind", [nn.Sequential, Doubled])
def test_a_compiled_model_is_one_graph_also_if_its_forward_is_of_torch(
    monkeypatch: pytest.MonkeyPatch, kind: type[nn.Sequential]
) -> None:
    """Dynamo skips functions of torch, unless another one calls them."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    model, inputs = kind(nn.Linear(2, 3), nn.Tanh()), torch.ones(4, 2)
    names, expected = [*model.state_dict()], model(inputs)
    torch._dynamo.reset()
    counters.clear()
    with torch._dynamo.config.patch(optimize_ddp=True):
        compile_model(model, Train(compile="on", deterministic=False), Group(World.single(), CPU))
        assert torch.equal(model(inputs), expected)
        assert torch.equal(model(inputs[:3]), expected[:3])
    assert counters["stats"]["unique_graphs"] == 1
    assert is_compiled(model)
    assert [*model.state_dict()] == names


def test_a_compiled_model_of_torch_keeps_the_settings_of_its_user() -> None:
    graphs: list[torch.fx.GraphModule] = []

    def counted(graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    model = torch.compile(nn.Sequential(nn.Linear(2, 3)), backend=counted)
    compile_model(model, Train(compile="on", deterministic=False), Group(World.single(), CPU))
    model(torch.ones(4, 2))
    assert graphs


def test_a_model_of_torch_fx_is_compiled() -> None:
    model = torch.fx.symbolic_trace(nn.Linear(2, 3))
    compile_model(model, Train(compile="on", deterministic=False), Group(World.single(), CPU))
    assert is_compiled(model)
