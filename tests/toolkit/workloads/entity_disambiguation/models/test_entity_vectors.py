"""Vectors of all entities: computed once for the same weights and entities."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from tests.toolkit.workloads.entity_disambiguation.entity_files import line, write_lines
from tests.toolkit.workloads.entity_disambiguation.models.mentions import batch_of, model_of, opened, scores
from toolkit.workloads.entity_disambiguation.data.samples.prepared import MentionSet, prepare
from toolkit.workloads.entity_disambiguation.models.entity_vectors import entity_vectors
from toolkit.workloads.entity_disambiguation.models.mention_batch import chunks_of


def test_vectors_are_those_of_the_model_and_are_computed_once(tmp_path: Path) -> None:
    task = opened(tmp_path)
    model, prepared = model_of(task), MentionSet.open(task.prepared)
    told: list[str] = []

    def report(what: str, done: int, total: int | None) -> None:
        told.append(what)

    found = entity_vectors(model.entity_encoder, "mean", prepared, report)
    batch = batch_of(task, *range(10))
    with torch.no_grad():
        own = model.entities(batch)
    tables = prepared.tables
    numbers = np.unique(task.splits["train"].candidates(np.arange(10)))
    order = np.argsort(-tables.tokens.lengths(numbers[numbers >= 0]), kind="stable")
    torch.testing.assert_close(
        torch.from_numpy(found[numbers[numbers >= 0][order]]), own, rtol=1e-4, atol=1e-5
    )
    assert found.shape == (len(tables.tokens), 16)
    assert found[1:].any(axis=1).all()
    assert not found[0].any(), "row 0 is not a candidate"
    assert told == ["encode entities"]
    entity_vectors(model.entity_encoder, "mean", prepared, report)
    assert told == ["encode entities"]


def test_vectors_depend_on_weights_and_entities_but_not_on_mentions(tmp_path: Path) -> None:
    task = opened(tmp_path)
    model, prepared = model_of(task), MentionSet.open(task.prepared)

    def stored() -> set[str]:
        return {path.name for path in prepared.path.parent.glob("entity_vectors-*")}

    entity_vectors(model.entity_encoder, "mean", prepared)
    first = stored()
    data = task._experiment.data
    lines = write_lines(tmp_path / "more.jsonl", [line(1, [("arn", "town")])])
    entity_vectors(model.entity_encoder, "mean", prepare(replace(data, test=str(lines))))
    assert stored() == first
    entity_vectors(model.entity_encoder, "cls", prepared)
    entity_vectors(model.entity_encoder, "mean", prepare(replace(data, description=False)))
    with torch.no_grad():
        model.context.network.embeddings.LayerNorm.weight.mul_(2)
    entity_vectors(model.entity_encoder, "mean", prepared)
    assert len(stored()) == len(first) + 3


def test_cached_vectors_are_those_of_the_encoder_before_training(tmp_path: Path) -> None:
    cached = opened(tmp_path, "model.entity_vectors=cached")
    reading = opened(tmp_path)
    torch.testing.assert_close(
        scores(model_of(cached), batch_of(cached, *range(8))),
        scores(model_of(reading), batch_of(reading, *range(8))),
        rtol=1e-4, atol=1e-4,
    )  # fmt: skip
    assert not any("entity" in name for name, _ in model_of(cached).named_parameters())


def test_chunks_cover_all_entities_and_end_where_lengths_fall_by_half() -> None:
    assert chunks_of(np.array([], dtype=np.int64)) == ()
    assert chunks_of(np.array([9] * 10 + [4] * 3)) == ((0, 10, 9), (10, 13, 4))
    lengths = np.sort(np.random.default_rng(0).integers(1, 200, 500))[::-1]
    chunks = chunks_of(lengths)
    assert [first for first, _, _ in chunks] == [0, *(last for _, last, _ in chunks[:-1])]
    assert chunks[-1][1] == 500
    assert all(length == lengths[first] for first, _, length in chunks)
    assert all((last - first) * length <= 8192 for first, last, length in chunks)
