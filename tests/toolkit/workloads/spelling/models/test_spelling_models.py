"""Properties of all models of the spelling study."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.toolkit.workloads.spelling.models.making import CASES, LONG, SHORT, TEXTS, Case, scored
from toolkit.workloads.spelling.models.batches import NONE
from toolkit.workloads.spelling.models.losses import summed_cross_entropy


@pytest.fixture(params=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    torch.manual_seed(1)
    return CASES[request.param]


def made(case: Case) -> nn.Module:
    return case[0]().eval()


def compare(one: torch.Tensor, other: torch.Tensor, labels: torch.Tensor) -> None:
    """Check that scores are equal within rounding wherever there is a label."""
    torch.testing.assert_close(one[labels != NONE], other[labels != NONE], rtol=1e-4, atol=1e-5)


def test_padding_changes_nothing(case: Case) -> None:
    """A text has the same scores alone and beside a longer text."""
    model, (_, batch_of, scores, labels) = made(case), case
    alone, together = batch_of([SHORT]), batch_of([LONG, SHORT])
    wanted = scores(model, alone)
    found = scores(model, together)[1:]
    if wanted.dim() == 3:
        found = found[:, : wanted.shape[1]]
    compare(found, wanted, labels(alone))


def test_content_of_padding_changes_nothing(case: Case) -> None:
    model, (_, batch_of, scores, labels) = made(case), case
    batch = batch_of([LONG, SHORT])
    wanted = scores(model, batch)
    batch.tokens[~batch.real] = 33
    compare(scores(model, batch), wanted, labels(batch))


def test_part_of_a_batch_has_the_scores_of_the_whole_batch(case: Case) -> None:
    """torch's DataParallel cuts batches."""
    model, (_, batch_of, _, _) = made(case), case
    batch = batch_of(TEXTS)
    for some, whole in zip(_parts(scored(model, batch, 2, 0)), _parts(scored(model, batch)), strict=True):
        kept = torch.tensor([2, 0])
        finite = whole[kept].isfinite()
        torch.testing.assert_close(some[finite], whole[kept][finite], rtol=1e-4, atol=1e-5)


def test_a_few_texts_can_be_learnt_exactly(case: Case) -> None:
    model, (_, batch_of, scores, labels) = made(case).train(), case
    batch = batch_of(TEXTS)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    wanted = labels(batch)
    for _ in range(60):
        loss = summed_cross_entropy(scores(model, batch), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = scores(model.eval(), batch).argmax(-1) == wanted
    assert bool(right[wanted != NONE].all())


def test_gradients_are_reproducible_bit_for_bit(case: Case) -> None:
    def once() -> list[torch.Tensor]:
        torch.manual_seed(3)
        model, (_, batch_of, scores, labels) = case[0]().train(), case
        batch = batch_of(TEXTS)
        summed_cross_entropy(scores(model, batch), labels(batch)).backward()
        return [weight.grad for weight in model.parameters() if weight.grad is not None]

    assert all(torch.equal(one, other) for one, other in zip(once(), once(), strict=True))


def _parts(scores: Any) -> list[torch.Tensor]:
    return [scores] if isinstance(scores, torch.Tensor) else [each for each in scores if each is not None]


def test_half_precision_gives_nearly_the_same_scores(case: Case) -> None:
    model, (_, batch_of, scores, labels) = made(case), case
    batch = batch_of(TEXTS)
    wanted = scores(model, batch)
    with torch.autocast("cpu", torch.bfloat16):
        found = scores(model, batch)
        loss = summed_cross_entropy(found, labels(batch))
    loss.backward()
    kept = labels(batch) != NONE
    torch.testing.assert_close(found[kept].float(), wanted[kept], rtol=0.1, atol=0.1)
    assert all(weight.grad.isfinite().all() for weight in model.parameters() if weight.grad is not None)


def test_a_text_without_words_changes_nothing(case: Case) -> None:
    """Attention over nothing would give NaN, also in the gradients of other texts."""
    model, (_, batch_of, scores, labels) = made(case), case
    alone, beside = batch_of([SHORT]), batch_of([[], SHORT])
    found = scores(model, beside)
    compare(found[1:], scores(model, alone), labels(alone))
    found[labels(beside) != NONE].sum().backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters() if weight.grad is not None)
