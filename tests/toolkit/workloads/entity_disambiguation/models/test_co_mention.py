"""The co-mention model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.toolkit.workloads.entity_disambiguation.models.mentions import batch_of, model_of, opened, scores
from toolkit.workloads.entity_disambiguation.models.co_mention import _Attention, _graph, _Merged


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("co_mention")


def test_other_mentions_of_a_sentence_change_the_scores(folder: Path) -> None:
    task = opened(folder, co_mention=True)
    model, batch = model_of(task), batch_of(task, 0, 5, 6)
    assert batch.others is not None
    alone = replace(batch, others=torch.full_like(batch.others, -1))
    has_others = (batch.others >= 0).flatten(1).any(1)
    assert has_others.any()
    differs = (scores(model, batch) != scores(model, alone)).any(1)
    assert torch.equal(differs, has_others)


def test_at_most_max_mentions_are_used(folder: Path) -> None:
    task = opened(folder, "model.max_mentions=1", co_mention=True)
    batch = batch_of(task, 0, 5)
    assert batch.others is None
    assert scores(model_of(task), batch).shape == (2, 3)


def test_attention_with_an_empty_mask_is_zero() -> None:
    attention = _Attention(8, 2)
    asked = torch.randn(1, 3, 8)
    found = attention(torch.randn(1, 2, 8), asked, torch.tensor([[[False] * 3, [True, False, False]]]))
    assert not found[0, 0].any()
    assert found[0, 1].any()


def test_an_entity_without_types_has_a_zero_vector_and_the_order_of_types_has_no_effect() -> None:
    merged = _Merged(5, 4)
    found = merged(torch.tensor([[0, 0], [1, 3], [3, 1]]))
    assert not found[0].any()
    torch.testing.assert_close(found[1], found[2])


def test_the_graph_links_only_connected_candidates_of_other_mentions() -> None:
    connected = torch.tensor([[0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=torch.bool)
    places = torch.tensor([[0, 1, 2, -1]])
    own = torch.block_diag(torch.ones(2, 2), torch.ones(2, 2)).bool()
    (found,) = _graph(connected, places, own)
    weight = torch.tensor([2.0, 1.0]).softmax(0)
    expected = torch.eye(4)
    # Candidates 0 and 2 are linked; 0 and 1 are of the same mention.
    expected[0, [0, 2]] = weight
    expected[2, [2, 0]] = weight
    torch.testing.assert_close(found, expected)


def test_candidates_of_the_database_are_connected_by_their_relations(folder: Path) -> None:
    task = opened(folder, co_mention=True)
    batch = batch_of(task, 0)
    assert batch.connected is not None
    river, town = batch.places[0, :2].tolist()
    assert batch.connected[river, town]
    assert batch.connected[town, river]
    assert torch.equal(batch.connected, batch.connected.T)


def test_texts_of_entities_can_be_left_out(folder: Path) -> None:
    task = opened(folder, "model.entity_text=false", "model.stages=2", co_mention=True)
    batch = batch_of(task, 0, 1)
    assert batch.vectors is None
    model = model_of(task)
    task.loss(model, batch).total.backward()
    assert torch.isfinite(scores(model, batch)[batch.places >= 0]).all()
