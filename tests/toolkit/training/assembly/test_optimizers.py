"""Optimizers: parameter groups, weight decay, and equality with torch."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from toolkit.config.library_arguments import OPTIMIZERS, SECTION_KEYS
from toolkit.config.schema import Optimizer
from toolkit.errors import UserError
from toolkit.training.assembly.optimizers import build_optimizer


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))


def names(optimizer: torch.optim.Optimizer, of: nn.Module) -> list[list[str]]:
    known = {parameter: name for name, parameter in of.named_parameters()}
    return [[known[parameter] for parameter in group["params"]] for group in optimizer.param_groups]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.LayerNorm = nn.LayerNorm(3)
        self.frozen = nn.Linear(3, 3).requires_grad_(False)


@pytest.mark.parametrize("kind", ["adam", "adamw", "sgd"])
@pytest.mark.parametrize("entry", ["norm", "LayerNorm.weight", "N"])
def test_parameters_in_no_decay_have_no_weight_decay(kind: str, entry: str) -> None:
    block = Block()
    config = Optimizer(kind=kind, weight_decay=0.1, lr=0.5, no_decay=("bias", entry))
    optimizer = build_optimizer(block, config)
    assert names(optimizer, block) == [
        ["linear.weight"],
        ["linear.bias", "LayerNorm.weight", "LayerNorm.bias"],
    ]
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0]
    assert {group["lr"] for group in optimizer.param_groups} == {0.5}


@pytest.mark.parametrize("kind", ["adam", "adamw", "sgd"])
def test_weights_that_fused_kernels_do_not_support_are_updated(kind: str) -> None:
    """A fused kernel reads a part of a larger tensor as one piece, and knows no complex numbers."""
    whole = torch.ones(2, 6)
    parts = nn.ParameterList([whole[:, :3], torch.ones(2, dtype=torch.complex64)])
    optimizer = build_optimizer(parts, Optimizer(kind=kind, lr=0.5))
    for part in parts:
        part.grad = torch.ones_like(part)
    optimizer.step()
    assert (parts[0] < 1).all()
    assert (parts[1].real < 1).all()
    assert (whole[:, 3:] == 1).all()


def test_parameters_are_in_the_order_of_the_model() -> None:
    block = model()
    optimizer = build_optimizer(block, Optimizer(no_decay=()))
    assert names(optimizer, block) == [[name for name, _ in block.named_parameters()]]


def test_settings_reach_the_optimizer() -> None:
    adam = build_optimizer(model(), Optimizer(kind="adam", betas=(0.8, 0.95), eps=1e-6))
    assert isinstance(adam, torch.optim.Adam)
    assert not isinstance(adam, torch.optim.AdamW)
    assert (adam.defaults["betas"], adam.defaults["eps"]) == ((0.8, 0.95), 1e-6)
    sgd = build_optimizer(model(), Optimizer(kind="sgd", momentum=0.9))
    assert isinstance(sgd, torch.optim.SGD)
    assert sgd.defaults["momentum"] == 0.9


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_steps_equal_those_of_torchs_own_optimizer(kind: str) -> None:
    config = Optimizer(kind=kind, lr=0.1, momentum=0.9, no_decay=(), arguments={"maximize": True})
    theirs = getattr(torch.optim, OPTIMIZERS[kind].name)
    special = {name: getattr(config, name) for name, kinds in SECTION_KEYS.items() if kind in kinds}
    if kind in ("adam", "adamw", "sgd"):
        special["fused"] = True
    if kind != "rprop":
        special["weight_decay"] = config.weight_decay
    trained = []
    for own in (True, False):
        torch.manual_seed(0)
        model = nn.Linear(5, 3)
        options = {"lr": 0.1, "maximize": True, **special}
        optimizer = build_optimizer(model, config) if own else theirs(model.parameters(), **options)
        for number in range(5):
            model(torch.full((2, 5), float(number))).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            optimizer.load_state_dict(optimizer.state_dict())
        trained.append(model.weight.detach().clone())
    assert torch.equal(*trained)


def test_values_that_torch_refuses_raise_a_user_error() -> None:
    config = Optimizer(kind="adadelta", arguments={"rho": 7.0})
    with pytest.raises(UserError, match="Adadelta refuses its arguments: Invalid rho"):
        build_optimizer(model(), config)
