"""What the plus models take from the repair model."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.toolkit.models.spelling.making import (
    REPAIR,
    TEXTS,
    VOCABULARY,
    plus,
    plus_batch,
    repair,
    repair_batch,
    scored,
)
from toolkit.errors import DataError
from toolkit.models.spelling.losses import summed_cross_entropy
from toolkit.models.spelling.repair import TokenizationRepair


def test_weights_that_were_trained_alone_give_the_same_repairs() -> None:
    trained, model = repair().eval(), plus().eval()
    model.load_repair(trained.state_dict(), "runs/repair")
    wanted = scored(trained, repair_batch(TEXTS))
    torch.testing.assert_close(scored(model, plus_batch(TEXTS)).repair, wanted)
    torch.testing.assert_close(model.repairs(plus_batch(TEXTS)), wanted)


def test_weights_of_other_sizes_are_refused_with_their_source() -> None:
    other = TokenizationRepair(replace(REPAIR, feed_forward_dim=8), vocabulary_size=VOCABULARY)
    with pytest.raises(DataError, match=r"runs/repair holds no weights of a tokenization_repair model"):
        plus().load_repair(other.state_dict(), "runs/repair")


@pytest.mark.parametrize("fixed", [True, False])
def test_a_fixed_repair_model_learns_nothing(fixed: bool) -> None:
    model, batch = plus(fix_tokenization_repair=fixed).train(), plus_batch(TEXTS)
    scores = scored(model, batch)
    assert batch.target_labels is not None
    assert batch.repair_labels is not None
    parts = [
        summed_cross_entropy(scores.words, batch.labels),
        summed_cross_entropy(scores.written, batch.target_labels),
        *([] if fixed else [summed_cross_entropy(scores.repair, batch.repair_labels, (1.0, 5.0, 5.0))]),
    ]
    sum(part.total for part in parts).backward()
    learnt = {name for name, weight in model.named_parameters() if weight.grad is not None}
    everything = {name for name, _ in model.named_parameters()}
    assert learnt == {name for name in everything if not fixed or not name.startswith("repair.")}
    assert model.repair.training is not fixed


def test_mixed_layers_begin_with_equal_shares() -> None:
    """Of the last ones: there are two, for want of three."""
    assert plus().shares.softmax(0).tolist() == [0.5, 0.5]
