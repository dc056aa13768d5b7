"""A finished run predicts texts with the batches that are asked for."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from toolkit.analysis.prediction.predict import predict_rows
from toolkit.checkpoint import verification
from toolkit.checkpoint.checksums import check_file
from toolkit.config import load_resolved
from toolkit.registry import task_kinds
from toolkit.run.run_dir import RunDir
from toolkit.task import task_class
from toolkit.workloads.spelling.inference import load_run

TEXTS = ["the stoen river", "garden letter windwo", "the bridge"] * 5


def edit(run: RunDir, pattern: str, value: str) -> None:
    text, count = re.subn(pattern, value, run.config.read_text())
    assert count == 1
    run.config.write_text(text)


@pytest.fixture
def sizes(of_words: RunDir, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of texts in each batch that is computed."""
    found: list[int] = []
    kind: Any = task_class(load_resolved(of_words.config))
    detect = kind.detect

    def noted(task: Any, model: Any, split: str, indices: Any, device: Any) -> Any:
        found.append(len(indices))
        return detect(task, model, split, indices, device)

    monkeypatch.setattr(kind, "detect", noted)
    return found


def test_a_batch_has_as_many_texts_as_asked_for(of_words: RunDir, sizes: list[int]) -> None:
    assert len(list(predict_rows(of_words, TEXTS, batch_size=2))) == len(TEXTS)
    assert sorted(sizes) == [1] + [2] * (len(TEXTS) // 2)


def test_labels_of_words_are_declared_as_predictions_of_different_lengths(of_words: RunDir) -> None:
    labels = [each["labels"] for each in predict_rows(of_words, TEXTS)]
    assert len({*map(len, labels)}) > 1
    assert task_kinds()[load_resolved(of_words.config).task.kind].varied_predictions


def test_a_batch_of_long_texts_has_no_more_tokens_than_usual(
    of_words: RunDir, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_run, "BATCH_TOKENS", 1)
    list(predict_rows(of_words, TEXTS, batch_size=len(TEXTS)))
    assert sizes == [1] * len(TEXTS)


def test_a_batch_is_that_of_the_evaluations_by_default(copy: RunDir, sizes: list[int]) -> None:
    edit(copy, r"batch_size: 5\n  batch_max_length: null", "batch_size: null\n  batch_max_length: 1")
    list(predict_rows(copy, TEXTS))
    assert sizes == [1] * len(TEXTS)


def test_each_file_of_the_checkpoint_is_verified_once(
    of_words: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Counter[str] = Counter()

    def noted(file: Path, *arguments: Any) -> Any:
        found[file.name] += 1
        return check_file(file, *arguments)

    monkeypatch.setattr(verification, "check_file", noted)
    list(predict_rows(of_words, TEXTS))
    assert found["model.safetensors"] == 1
    assert set(found.values()) == {1}
