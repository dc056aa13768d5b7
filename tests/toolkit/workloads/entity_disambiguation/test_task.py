"""Scores, files and training of entity disambiguation."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.toolkit.support.ranks import run_ranks
from tests.toolkit.workloads.entity_disambiguation.entity_files import line, tiny_entities, write_lines
from tests.toolkit.workloads.entity_disambiguation.models.mentions import batch_of, model_of, opened
from tests.toolkit.workloads.entity_disambiguation.scorer import score
from toolkit.config import load
from toolkit.errors import DataError
from toolkit.files import read_json
from toolkit.nlp.exported_files import ExportedFiles
from toolkit.reliability.stop import StopFlag
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.task import Evaluation
from toolkit.testing import contract
from toolkit.training import worker
from toolkit.workloads.entity_disambiguation.data.entities.database import import_profiles
from toolkit.workloads.entity_disambiguation.task import EntityDisambiguationTask

ROOT = Path(__file__).resolve().parents[4]


def evaluated(task: EntityDisambiguationTask, split: str = "test") -> Evaluation:
    return contract.evaluated(task, model_of(task), split)


@pytest.mark.parametrize("no_candidate", [False, True])
def test_every_slice_has_the_scores_of_the_reference_scorer(tmp_path: Path, no_candidate: bool) -> None:
    names = ("arn", "bel", "cor", "dun", "esk", "fal")
    records = [line(n, [(names[n % 6], "town"), (names[(n + 1) % 6], "river")]) for n in range(20)]
    for number, record in enumerate(records):
        record["gold"][0] = number % 4 > 0
        record["qids"][1] = ("fal.river", record["qids"][1], "Q-1")[number % 3]
    tiny_entities(tmp_path)
    test = json.dumps(str(write_lines(tmp_path / "mixed.jsonl", records)))
    task = opened(tmp_path, f"data.test={test}", f"data.no_candidate={str(no_candidate).lower()}")
    result, samples = evaluated(task), task.splits["test"]
    members = np.column_stack([np.ones(len(samples), bool), samples.members])
    predictions = result.outputs["probabilities"].rows.argmax(1)
    scores = task.slice_scores(result)
    assert list(scores) == ["final_loss", "unif_TL", "unif_NS_all", "crowded"]
    for column, found in zip(members.T, scores.values(), strict=True):
        assert found == score(samples.labels, predictions, column, no_candidate=no_candidate)
    metrics = task.metrics("test", result)
    assert metrics["accuracy"] == scores["final_loss"].accuracy
    assert metrics["popularity"] == scores["final_loss"].popularity
    assert metrics["accuracy/crowded"] == scores["crowded"].accuracy
    assert 0 < scores["final_loss"].mentions < len(samples)


def test_a_slice_without_mentions_cannot_select_the_weights(tmp_path: Path) -> None:
    few = ("data.eval_slices=[unif_HD, unif_all]", "data.head_above=1000")
    opened(tmp_path, *few, "evaluation.metric=accuracy/unif_all:max")
    with pytest.raises(DataError, match=r"metric is accuracy/unif_HD, .* data\.head_above"):
        opened(tmp_path, *few, "evaluation.metric=accuracy/unif_HD:max")


def test_probabilities_sum_to_one_over_a_mentions_own_candidates(tmp_path: Path) -> None:
    task = opened(tmp_path)
    outputs = evaluated(task).outputs["probabilities"].rows
    np.testing.assert_allclose(outputs.sum(1), 1, rtol=1e-5)
    assert (outputs[task.splits["test"].candidates(np.arange(11)) < 0] == 0).all()


def test_tokens_of_mentions_and_titles_are_hidden_only_in_training(tmp_path: Path) -> None:
    task = opened(tmp_path, "task.mask_title=true")
    batch, mask_id = batch_of(task, *range(20)), task._data.meta["mask_id"]
    torch.manual_seed(0)
    hidden = task._hidden(batch)
    assert (hidden.tokens == mask_id).any()
    assert (hidden.entity_tokens == mask_id).any()
    changed = hidden.tokens != batch.tokens
    place = torch.arange(changed.shape[1])
    assert not (changed & ~((place >= batch.spans[:, :1]) & (place < batch.spans[:, 1:]))).any()
    model = model_of(task)
    losses = {task.loss(model, batch).total.item() for _ in range(3)}
    assert len(losses) == 1, "evaluation hides no tokens"


def test_transformers_loads_the_exported_encoder_with_the_markers(tmp_path: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    task = opened(tmp_path)
    run, model = RunDir(tmp_path / "run"), model_of(task)
    task.export(run, model)
    again = AutoModel.from_pretrained(ExportedFiles(run).model)
    own = model.context.network.state_dict()
    assert all(torch.equal(again.state_dict()[name], value) for name, value in own.items())
    tokenizer = AutoTokenizer.from_pretrained(ExportedFiles(run).model)
    markers = task._data.meta["markers"]
    assert {name: tokenizer.convert_tokens_to_ids(name) for name in markers} == markers


def finished(world: World, path: Path) -> str:
    return worker.run_attempt(RunDir(path), world, StopFlag()).value


@pytest.mark.slow
@pytest.mark.skipif("STK_REFERENCE_DATA" not in os.environ, reason="STK_REFERENCE_DATA names no folder")
@pytest.mark.skipif("STK_MINILM" not in os.environ, reason="STK_MINILM names no folder with a real encoder")
def test_accuracy_on_the_sample_of_bootleg_is_near_that_of_bootleg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bootleg reaches .871 after ten epochs. Here ten epochs reach .943; one is enough for this test."""
    sample = Path(os.environ["STK_REFERENCE_DATA"]).absolute() / "bootleg_sample"
    monkeypatch.setenv("STK_DATA_DIR", str(tmp_path))
    (tmp_path / "bootleg_sample").mkdir()
    for name in ("train.jsonl", "dev.jsonl"):
        (tmp_path / "bootleg_sample" / name).symlink_to(sample / name)
    import_profiles(sample / "raw_profile.jsonl", pids="keep").save(tmp_path / "bootleg_sample" / "entity_db")
    minilm = json.dumps(str(Path(os.environ["STK_MINILM"]).absolute()))
    experiment = load(
        ROOT / "configs" / "ned_sample.yaml",
        [f"model.path={minilm}", "train.epochs=1", "train.device=cpu", "data.max_entity_tokens=24"],
    )
    run = create_run(experiment, tmp_path / "runs")
    (ended,) = run_ranks(1, finished, run.path)
    assert (ended.value, ended.error) == ("finished", "")
    result: Any = read_json(run.result)
    scores = result["metrics"]["validation"]
    assert scores["accuracy"] >= 0.85
    assert scores["popularity"] == pytest.approx(61 / 70)


def test_each_distinct_candidate_of_a_batch_is_encoded_once(tmp_path: Path) -> None:
    batch = batch_of(opened(tmp_path), *range(40))
    assert len(batch.titles) == 15
    assert (batch.places >= 0).sum() > 80
    assert replace(batch, real_tokens=0).take(torch.tensor([0])).titles.shape[0] <= 3
