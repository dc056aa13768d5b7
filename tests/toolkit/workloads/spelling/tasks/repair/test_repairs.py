"""The scores and the files of the repair of white space."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.toolkit.workloads.spelling.conftest import OnBenchmark
from tests.toolkit.workloads.spelling.spelling_files import (
    tiny_plus,
    tiny_repair,
    tiny_words,
    untrained_repair,
)
from toolkit.errors import DataError
from toolkit.precheck.check_inputs import check_inputs
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir
from toolkit.task import Evaluation
from toolkit.testing.contract import evaluated
from toolkit.training.warm_start.find import find_weights
from toolkit.training.warm_start.load import load_exact_weights
from toolkit.workloads.spelling.data.texts.repairs import DELETE, INSERT, KEEP, repaired, repairs_of
from toolkit.workloads.spelling.files import SpellingFiles
from toolkit.workloads.spelling.metrics.correction import score_corrections
from toolkit.workloads.spelling.metrics.whitespace import score_whitespace
from toolkit.workloads.spelling.models.batches import NONE, RepairBatch
from toolkit.workloads.spelling.models.repair_plus import TokenizationRepairPlus
from toolkit.workloads.spelling.tasks.repair.base import repair_counts
from toolkit.workloads.spelling.tasks.repair.tokenization_repair import TokenizationRepairTask
from toolkit.workloads.spelling.tasks.repair.tokenization_repair_plus import (
    TokenizationRepairPlusTask,
    words_read,
)

CPU = torch.device("cpu")
#: Texts and right texts. The last pairs are empty, too long, and of different characters.
CORRUPT = ["th e cat", "theca t", "", "a " * 300, "thecat"]
GOLDS = ["the cat", "the cat", "", "a " * 300, "a dog"]


@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=5).map(" ".join), st.data())
def test_repairs_are_counted_by_the_resulting_texts(gold: str, data: st.DataObject) -> None:
    characters = gold.replace(" ", "")
    spaced = data.draw(st.lists(st.booleans(), min_size=len(characters), max_size=len(characters)))
    text = "".join(c + (" " if s else "") for c, s in zip(characters, spaced, strict=True)).strip()
    classes = data.draw(
        st.lists(st.sampled_from([KEEP, INSERT, DELETE]), min_size=len(text), max_size=len(text))
    )
    wanted = score_whitespace([text], [repaired(text, classes)], [gold])
    found = repair_counts(
        torch.tensor([[KEEP, *classes, KEEP]]),
        torch.tensor([[NONE, *repairs_of(text, gold), NONE]]),
        torch.tensor([[False, *(c == " " for c in text), False]]),
    ).tolist()
    counts = wanted.counts
    positives = [counts.true_positives, counts.false_positives, counts.false_negatives]
    assert found == pytest.approx([*positives, 1, wanted.f1_sum, wanted.equal])


def test_texts_without_known_repairs_are_not_counted() -> None:
    nothing = torch.full((1, 4), NONE)
    assert repair_counts(torch.ones_like(nothing), nothing, nothing == KEEP).tolist() == [0.0] * 6


class _Deletes(nn.Module):
    """A model that deletes all spaces."""

    def forward(self, rows: torch.Tensor, batch: RepairBatch) -> torch.Tensor:
        return torch.tensor([0.0, 0.0, 1.0]).expand(*batch.tokens.shape, 3)


def scored(task: Any, model: nn.Module) -> Evaluation:
    return evaluated(task, model, "test", batch_size=2)


def test_repairs_have_a_line_for_each_line_of_the_file(on_benchmark: OnBenchmark, run: RunDir) -> None:
    task = on_benchmark(tiny_repair, CORRUPT, GOLDS)
    found = scored(task, _Deletes())
    task.write_report(run, "test", found)
    lines = SpellingFiles(run).repairs("test").read_text(encoding="utf-8").splitlines()
    assert lines == ["thecat", "thecat", "", " ".join("a" * 300), "thecat"]
    facts = json.loads(SpellingFiles(run).repair_counts("test").read_text(encoding="utf-8"))
    assert (facts["texts"], facts["left_out"], facts["counts"]["texts"]) == (3, 2, 2)
    # `th e cat` needs one of its two spaces deleted; `theca t` needs one deletion and one insertion.
    positives = [facts["counts"][f"{name}_positives"] for name in ("true", "false")]
    assert [*positives, facts["counts"]["false_negatives"]] == [2, 1, 1]
    metrics = task.metrics("test", found)
    assert (metrics["f1"], metrics["sequence_accuracy"]) == (pytest.approx(4 / 6), 0.0)


def test_labels_are_refused_for_the_repair_of_texts(on_benchmark: OnBenchmark) -> None:
    with pytest.raises(DataError, match=r"correct\.txt has labels, expected texts: .*tokenization_repair"):
        on_benchmark(tiny_repair, ["th ecat"], ["0 1"])


def test_tokenizer_with_tokens_of_several_characters_is_refused(tmp_path: Path) -> None:
    experiment = tiny_repair(tmp_path, f"data.tokenizer_path={tmp_path}/tokenizer.json")
    with pytest.raises(DataError, match=r"data.tokenizer_path: .* expected one of single characters"):
        TokenizationRepairTask(experiment)


@pytest.fixture
def plus(tmp_path: Path) -> TokenizationRepairPlusTask:
    return TokenizationRepairPlusTask(tiny_plus(tmp_path))


def test_the_repair_model_starts_with_the_best_weights_of_its_run(
    plus: TokenizationRepairPlusTask, tmp_path: Path
) -> None:
    model = plus.model()
    assert isinstance(model, TokenizationRepairPlus)
    source = find_weights("model.repair_run", str(untrained_repair(tmp_path).path))
    other = plus.model()
    nn.init.zeros_(other.repair.characters.embedding.table.weight)
    load_exact_weights("model.repair_run", source, other.repair)
    for name, value in model.repair.state_dict().items():
        assert torch.equal(value, other.repair.state_dict()[name])


def test_files_of_a_plus_model_have_a_line_for_each_text(
    plus: TokenizationRepairPlusTask, run: RunDir
) -> None:
    found = scored(plus, plus.model())
    plus.write_report(run, "test", found)
    files = SpellingFiles(run)
    repairs, detections, corrections = (
        file("test").read_text(encoding="utf-8").splitlines()
        for file in (files.repairs, files.detections, files.corrections)
    )
    samples = plus.splits["test"]
    texts, targets = zip(*samples.texts(np.arange(len(samples))), strict=True)
    assert len(repairs) == len(detections) == len(corrections) == len(samples)
    for text, target, line, labels in zip(texts, targets, repairs, detections, strict=True):
        assert line.replace(" ", "") == text.replace(" ", "")
        assert len(labels.split()) == len(target.split())
    whole = score_corrections(texts, corrections, targets).counts
    assert plus.metrics("test", found)["correction_f1"] == whole.f1


def test_a_plus_model_finds_errors_without_its_decoder(plus: TokenizationRepairPlusTask) -> None:
    model, every, calls = plus.model().eval(), np.arange(3), list[object]()
    scores = plus.collate("test", every, CPU).texts.scored_by(model).words.softmax(-1)[..., 1]
    model.decoder.register_forward_hook(lambda *given: calls.append(given))
    with torch.no_grad():
        found = plus.detect(model, "test", every, CPU)
    assert calls == []
    for row, probabilities in zip(scores.tolist(), found, strict=True):
        assert row[: len(probabilities)] == pytest.approx(probabilities)


def test_words_of_texts_that_are_too_long_to_be_written_are_still_labelled(tmp_path: Path) -> None:
    short = TokenizationRepairPlusTask(tiny_plus(tmp_path, "model.sec_max_output_length=2"))
    batch = short.collate("train", np.arange(4), CPU)
    assert batch.texts.target_labels is not None
    assert (batch.texts.target_labels == NONE).all()
    loss = short.loss(short.model(), batch)
    assert loss.count == sum(short.splits["train"].sizes("labels", np.arange(4)))


def test_unsuitable_repair_run_is_refused_before_anything_starts(tmp_path: Path) -> None:
    experiment = tiny_plus(tmp_path)

    def on(run: Path) -> Any:
        model = dataclasses.replace(experiment.model, repair_run=str(run))
        return dataclasses.replace(experiment, model=model)

    with pytest.raises(DataError, match=r"model.repair_run: .* is not a run"):
        check_inputs(on(tmp_path))
    unfinished = untrained_repair(tmp_path / "other")
    unfinished.result.unlink()
    with pytest.raises(DataError, match=r"model.repair_run: .* has not finished"):
        check_inputs(on(unfinished.path))
    words = create_run(tiny_words(tmp_path / "words"), tmp_path / "words")
    with pytest.raises(DataError, match="is a run of sed_words, expected one of tokenization_repair"):
        check_inputs(on(words.path))
    check_inputs(experiment)


def test_a_correction_reads_the_same_as_an_evaluation_if_its_repair_is_right(
    plus: TokenizationRepairPlusTask,
) -> None:
    samples = plus.splits["test"]
    every = np.arange(len(samples))
    texts = [text for text, _ in samples.texts(every)]
    read = plus.texts_repaired(texts, [" ".join(words) for words in words_read(samples, every)], CPU)
    whole = plus.collate("test", every, CPU).texts
    for name in ("tokens", "lengths", "pieces", "words", "features"):
        assert torch.equal(getattr(read, name), getattr(whole, name)), name
    assert read.word_count == whole.word_count
