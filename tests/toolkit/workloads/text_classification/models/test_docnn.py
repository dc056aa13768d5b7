"""DocNN has the shape of PyText's, and padding has no effect."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.workloads.text_classification.config import DocNN as Config
from toolkit.workloads.text_classification.models.docnn import DocNN

POOLINGS = ("max", "mean", "logsumexp")


def docnn(*, vocabulary_size: int = 50, classes: int = 3, pad_id: int = 0, **parameters: Any) -> DocNN:
    torch.manual_seed(0)
    sizes = {"embedding_dim": 6, "filters": 5, "embedding_std": 1.0}
    model = DocNN(
        Config(**{**sizes, **parameters}),
        vocabulary_size=vocabulary_size,
        labels=["x"] * classes,
        pad_id=pad_id,
    )
    return model.eval()


def parameters(model: DocNN) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("vocabulary_size", [3, 1000, 17_000])
def test_default_model_has_the_number_of_parameters_of_pytext(vocabulary_size: int) -> None:
    model = DocNN(Config(), vocabulary_size=vocabulary_size, labels=("a", "b"), pad_id=0)
    assert parameters(model) == 100 * vocabulary_size + 70_602


def test_hidden_layers_add_their_parameters() -> None:
    plain, deep = docnn(), docnn(hidden=(7, 4))
    assert parameters(deep) - parameters(plain) == (10 * 7 + 7) + (7 * 4 + 4) + (4 * 3 + 3) - (10 * 3 + 3)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("length", [1, 2, 30])
def test_text_of_any_length_gives_one_score_for_each_class(pooling: str, length: int) -> None:
    """Also a text shorter than the convolutions are wide."""
    scores = docnn(pooling=pooling, kernels=(3, 4, 7))(torch.ones(4, length, dtype=torch.long))
    assert scores.shape == (4, 3)
    assert torch.isfinite(scores).all()


texts = st.lists(st.lists(st.integers(1, 49), min_size=1, max_size=12), min_size=1, max_size=4)


@settings(deadline=None, max_examples=60)
@given(texts=texts, extra=st.integers(0, 20), pooling=st.sampled_from(POOLINGS))
def test_padding_has_no_effect(texts: list[list[int]], extra: int, pooling: str) -> None:
    model = docnn(pooling=pooling)
    length = max(map(len, texts)) + extra
    padded = torch.tensor([text + [0] * (length - len(text)) for text in texts])
    with torch.no_grad():
        alone = torch.cat([model(torch.tensor([text])) for text in texts])
        torch.testing.assert_close(model(padded), alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_poolings_differ_from_each_other(pooling: str) -> None:
    tokens = torch.tensor([[5, 9, 31, 2, 2]])
    others = [docnn(pooling=other)(tokens) for other in POOLINGS if other != pooling]
    assert not any(torch.allclose(docnn(pooling=pooling)(tokens), other) for other in others)


def test_order_of_words_matters() -> None:
    model = docnn()
    assert not torch.allclose(model(torch.tensor([[5, 9, 31, 2]])), model(torch.tensor([[2, 31, 9, 5]])))


def test_vector_of_padding_stays_zero() -> None:
    model = docnn(pad_id=4)
    model(torch.tensor([[1, 2, 4, 4]])).sum().backward()
    assert model.embedding.weight[4].tolist() == [0.0] * 6
    gradient = model.embedding.weight.grad
    assert gradient is not None
    assert gradient[4].tolist() == [0.0] * 6
    assert gradient[1].abs().sum() > 0


def test_dropout_of_whole_tokens_acts_in_training_only() -> None:
    model, tokens = docnn(embedding_dropout=0.5, dropout=0.0), torch.randint(1, 50, (2, 9))
    assert torch.equal(model(tokens), model(tokens))
    model.train()
    assert not torch.equal(model(tokens), model(tokens))


def test_initial_vectors_have_the_standard_deviation_of_the_config() -> None:
    vectors = docnn(vocabulary_size=5000, embedding_std=0.3).embedding.weight[1:]
    assert vectors.std().item() == pytest.approx(0.3, rel=0.02)
