"""The bi-encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from tests.toolkit.workloads.entity_disambiguation.models.mentions import batch_of, model_of, opened, scores
from toolkit.errors import DataError
from toolkit.training.assembly.choose_reduction import is_compiled
from toolkit.workloads.entity_disambiguation.models import mention_batch

PLAIN = ("model.hidden=null", "model.prior=false", "task.mask_mention=false", "model.dropout=0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bi_encoder")


def test_initial_scores_are_the_cosines_of_mean_vectors_over_the_temperature(folder: Path) -> None:
    from transformers import AutoModel

    task = opened(folder, *PLAIN, "model.temperature=0.1")
    model, batch = model_of(task), batch_of(task, 0)
    plain = AutoModel.from_pretrained(folder / "bert").eval()
    plain.resize_token_embeddings(model.context.network.get_input_embeddings().num_embeddings)
    plain.load_state_dict(model.context.network.state_dict(), strict=False)

    def mean(tokens: torch.Tensor) -> torch.Tensor:
        kept = tokens[tokens != 0]
        return plain(input_ids=kept[None]).last_hidden_state[0].mean(0)

    with torch.no_grad():
        own = mean(batch.tokens[0])
        assert batch.entity_tokens is not None
        wanted = [
            functional.cosine_similarity(own, mean(batch.entity_tokens[place]), 0) / 0.1
            for place in batch.places[0].tolist()
            if place >= 0
        ]
    torch.testing.assert_close(
        scores(model, batch)[0, : len(wanted)], torch.stack(wanted), rtol=1e-4, atol=1e-4
    )


def test_weights_are_from_the_folder_and_markers_start_as_copies_of_tokens(folder: Path) -> None:
    from transformers import AutoModel

    model = model_of(opened(folder, *PLAIN))
    own = AutoModel.from_pretrained(folder / "bert").get_input_embeddings().weight
    table = model.context.network.get_input_embeddings().weight
    assert len(table) == len(own) + 5
    assert torch.equal(table[: len(own)], own)
    assert all(any(torch.equal(row, each) for each in own) for row in table[len(own) :])


@pytest.mark.parametrize("co_mention", [False, True])
def test_part_of_a_batch_has_the_scores_of_the_whole_batch(folder: Path, co_mention: bool) -> None:
    """torch's DataParallel splits batches."""
    task = opened(folder, co_mention=co_mention)
    model, batch = model_of(task), batch_of(task, *range(9))
    torch.testing.assert_close(
        scores(model, batch, 1, 4, 8), scores(model, batch)[[1, 4, 8]], rtol=1e-4, atol=1e-4
    )


def test_the_prior_adds_the_log_of_a_candidates_share(folder: Path) -> None:
    task = opened(folder)
    model, batch = model_of(task), batch_of(task, 0)
    with_prior = scores(model, batch)[0]
    with torch.no_grad():
        model.prior_weight.zero_()
    known = batch.places[0] >= 0
    added = (with_prior - scores(model, batch)[0])[known]
    # Rivers have 10, towns 9, ships 8 in the database.
    shares = torch.tensor([11.0, 10.0, 9.0][: len(added)])
    torch.testing.assert_close(added, (shares / shares.sum()).log())


@pytest.mark.parametrize("pooling", ["mean", "cls", "mention"])
def test_every_pooling_gives_gradients(folder: Path, pooling: str) -> None:
    task = opened(folder, f"model.pooling={pooling}")
    model = model_of(task)
    task.loss(model, batch_of(task, *range(8))).total.backward()
    assert all(weight.grad is not None for weight in model.parameters())


def test_separate_encoders_can_have_different_numbers_of_layers(folder: Path) -> None:
    model = model_of(opened(folder, "model.share=false", "model.entity_layers=1"))
    assert set(model.encoders) == {"context", "entity"}
    assert model.entity.network.config.num_hidden_layers == 1
    assert model.context.network.config.num_hidden_layers == 2
    assert model.entity_head is not model.context_head


def test_too_many_layers_are_refused_with_the_option(folder: Path) -> None:
    task = opened(folder, "model.context_layers=3", "model.entity_layers=3")
    with pytest.raises(DataError, match=r"model.context_layers is 3, but the model in .* has 2 layers"):
        task.model()


def test_a_compiled_model_is_compiled_once_for_any_number_of_chunks(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mention_batch, "_CHUNK_TOKENS", 160)
    task = opened(folder, *PLAIN)
    batches = {len(batch.chunks): batch for batch in (batch_of(task, *range(size)) for size in range(2, 13))}
    model, graphs = model_of(task), []
    expected = {chunks: scores(model, batch) for chunks, batch in batches.items()}

    def counted(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    model.compile(dynamic=True, backend=counted)
    found = {chunks: scores(model, batch) for chunks, batch in batches.items()}
    assert len(batches) >= 3
    assert all(torch.equal(found[chunks], expected[chunks]) for chunks in batches)
    assert 1 <= len(graphs) <= 2
    assert is_compiled(model)


def test_half_precision_gives_similar_probabilities(folder: Path) -> None:
    task = opened(folder)
    model, batch = model_of(task), batch_of(task, *range(6))
    whole = scores(model, batch).softmax(1)
    with torch.autocast("cpu", torch.bfloat16):
        half = scores(model, batch).softmax(1)
    torch.testing.assert_close(half, whole, rtol=0, atol=0.1)


@pytest.mark.parametrize("co_mention", [False, True])
def test_half_precision_does_not_round_the_cosines(folder: Path, co_mention: bool) -> None:
    """Rounded ones of two candidates are often equal, and the more popular candidate would be chosen."""
    task = opened(folder, "model.prior=false", "model.temperature=1", co_mention=co_mention)
    model = model_of(task)
    if co_mention:
        # Without its other part, the score is the cosine.
        model.score[-1].requires_grad_(False).weight.zero_()
        model.score[-1].bias.zero_()
    with torch.autocast("cpu", torch.bfloat16):
        found = scores(model, batch_of(task, *range(6)))
    cosines = found[found.isfinite()]
    assert not torch.equal(cosines, cosines.bfloat16().float())
