"""How plus models use the repair model."""

from __future__ import annotations

import pytest
import torch

from tests.toolkit.workloads.spelling.models.making import TEXTS, plus_batch, repair_batch, scored, small

PLUS = "tokenization_repair_plus"


def test_weights_of_a_trained_repair_model_give_the_same_repairs() -> None:
    trained, model = small("tokenization_repair").eval(), small(PLUS).eval()
    model.repair.load_state_dict(trained.state_dict())
    wanted = scored(trained, repair_batch(TEXTS))
    torch.testing.assert_close(scored(model, plus_batch(TEXTS)).repair, wanted)
    torch.testing.assert_close(model.repairs(plus_batch(TEXTS)), wanted)


@pytest.mark.parametrize("fixed", [True, False])
def test_a_fixed_repair_model_learns_nothing(fixed: bool) -> None:
    model = small(PLUS, fix_tokenization_repair=fixed).train()
    sum(each.sum() for each in scored(model, plus_batch(TEXTS))).backward()
    learnt = {name for name, weight in model.named_parameters() if weight.grad is not None}
    everything = {name for name, _ in model.named_parameters()}
    assert learnt == {name for name in everything if not fixed or not name.startswith("repair.")}
    assert model.repair.training is not fixed


def test_mixed_layers_begin_with_equal_shares() -> None:
    """The repair model here has only two layers."""
    assert small(PLUS).shares.softmax(0).tolist() == [0.5, 0.5]
