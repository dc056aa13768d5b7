"""Properties of all models of the spelling study."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.toolkit.workloads.spelling.models.making import CASES, LONG, SHORT, TEXTS, Case, scored
from toolkit.workloads.spelling.models.batches import NONE
from toolkit.workloads.spelling.models.losses import summed_cross_entropy


@pytest.fixture(params=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    torch.manual_seed(1)
    return CASES[request.param]


@pytest.fixture
def model(case: Case) -> Any:
    return case.make().eval()


def compare(one: torch.Tensor, other: torch.Tensor, labels: torch.Tensor) -> None:
    """Check that scores are equal within rounding wherever there is a label."""
    torch.testing.assert_close(one[labels != NONE], other[labels != NONE], rtol=1e-4, atol=1e-5)


def test_padding_changes_nothing(case: Case, model: Any) -> None:
    """A text has the same scores alone and beside a longer text."""
    alone, together = case.batch_of([SHORT]), case.batch_of([LONG, SHORT])
    wanted = case.scores(model, alone)
    found = case.scores(model, together)[1:]
    if wanted.dim() == 3:
        found = found[:, : wanted.shape[1]]
    compare(found, wanted, case.labels(alone))


def test_content_of_padding_changes_nothing(case: Case, model: Any) -> None:
    batch = case.batch_of([LONG, SHORT])
    wanted = case.scores(model, batch)
    batch.tokens[~batch.real] = 33
    compare(case.scores(model, batch), wanted, case.labels(batch))


def test_part_of_a_batch_has_the_scores_of_the_whole_batch(case: Case, model: Any) -> None:
    """torch's DataParallel cuts batches."""
    batch = case.batch_of(TEXTS)
    for some, whole in zip(_parts(scored(model, batch, 2, 0)), _parts(scored(model, batch)), strict=True):
        kept = torch.tensor([2, 0])
        finite = whole[kept].isfinite()
        torch.testing.assert_close(some[finite], whole[kept][finite], rtol=1e-4, atol=1e-5)


def test_a_few_texts_can_be_learnt_exactly(case: Case, model: Any) -> None:
    model, batch = model.train(), case.batch_of(TEXTS)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    wanted = case.labels(batch)
    for _ in range(60):
        loss = summed_cross_entropy(case.scores(model, batch), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = case.scores(model.eval(), batch).argmax(-1) == wanted
    assert bool(right[wanted != NONE].all())


def test_gradients_are_reproducible_bit_for_bit(case: Case) -> None:
    def once() -> list[torch.Tensor]:
        torch.manual_seed(3)
        model, batch = case.make().train(), case.batch_of(TEXTS)
        summed_cross_entropy(case.scores(model, batch), case.labels(batch)).backward()
        return [weight.grad for weight in model.parameters() if weight.grad is not None]

    assert all(torch.equal(one, other) for one, other in zip(once(), once(), strict=True))


def _parts(scores: Any) -> list[torch.Tensor]:
    return [scores] if isinstance(scores, torch.Tensor) else [each for each in scores if each is not None]


def test_half_precision_gives_nearly_the_same_scores(case: Case, model: Any) -> None:
    batch = case.batch_of(TEXTS)
    wanted = case.scores(model, batch)
    with torch.autocast("cpu", torch.bfloat16):
        found = case.scores(model, batch)
        loss = summed_cross_entropy(found, case.labels(batch))
    loss.backward()
    kept = case.labels(batch) != NONE
    torch.testing.assert_close(found[kept].float(), wanted[kept], rtol=0.1, atol=0.1)
    assert all(weight.grad.isfinite().all() for weight in model.parameters() if weight.grad is not None)


def test_a_text_without_words_changes_nothing(case: Case, model: Any) -> None:
    """Attention over nothing would give NaN, also in the gradients of other texts."""
    alone, beside = case.batch_of([SHORT]), case.batch_of([[], SHORT])
    found = case.scores(model, beside)
    compare(found[1:], case.scores(model, alone), case.labels(alone))
    found[case.labels(beside) != NONE].sum().backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters() if weight.grad is not None)
