"""The scores and the files of the detection of spelling errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.toolkit.workloads.spelling.conftest import OnBenchmark
from tests.toolkit.workloads.spelling.spelling_files import tiny_texts, tiny_words
from toolkit.errors import DataError
from toolkit.run.run_dir import RunDir
from toolkit.task import Evaluation
from toolkit.testing.contract import evaluated
from toolkit.workloads.spelling.files import SpellingFiles
from toolkit.workloads.spelling.metrics.detection import DetectionScore
from toolkit.workloads.spelling.models.batches import DetectionBatch
from toolkit.workloads.spelling.tasks.detection import DetectionTask, SedWordsTask
from toolkit.workloads.spelling.tokenizers.make_tokenizer import characters, save

#: Texts and their labels. The non-word stoen is wrong, and under is written instead of over.
CORRUPT = ["the stoen under river", "", "garden " * 110, "river, window", "stoen the"]
GOLDS = ["0 1 1 0", "", " ".join(["0"] * 110), "0 0", "1 0"]


class _Says(nn.Module):
    """A model that finds an error in every n-th word or text."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every = every

    def forward(self, rows: torch.Tensor, batch: DetectionBatch) -> torch.Tensor:
        assert batch.labels is not None
        found = torch.arange(batch.labels.shape[-1]) % self.every == 0
        wrong = found.expand(batch.labels.shape)
        return torch.stack([~wrong, wrong], dim=-1).float()


def scored(task: DetectionTask, every: int) -> Evaluation:
    return evaluated(task, _Says(every), "test", batch_size=2)


def test_each_word_is_counted_once_and_each_error_by_its_kind(on_benchmark: OnBenchmark) -> None:
    detection = on_benchmark(tiny_words, CORRUPT, GOLDS)
    # Called wrong: the, under; river,; stoen. Wrong: stoen, under; stoen.
    found = scored(detection, 2)
    score = DetectionScore.of_sums(*found.sums[2:].tolist())
    assert (score.labels, score.equal) == (8, 5)
    assert (score.true_positives, score.false_positives) == (2, 2)
    assert (score.real_words, score.found_real, score.non_words, score.found_non) == (1, 1, 2, 1)
    metrics = detection.metrics("test", found)
    assert metrics["f1"] == pytest.approx(4 / 7)
    assert (metrics["real_word_rate"], metrics["non_word_rate"]) == (1.0, 0.5)


def test_predictions_have_a_line_for_each_line_of_the_file(
    on_benchmark: OnBenchmark, run: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    detection = on_benchmark(tiny_words, CORRUPT, GOLDS)
    detection.write_report(run, "test", scored(detection, 2))
    written = SpellingFiles(run).detections("test").read_text(encoding="utf-8")
    assert written.splitlines() == ["1 0 1 0", "", " ".join(["0"] * 110), "1 0", "1 0"]
    facts = json.loads(SpellingFiles(run).detection_counts("test").read_text(encoding="utf-8"))
    assert (facts["texts"], facts["left_out"], facts["counts"]["true_positives"]) == (3, 2, 2)
    (warning,) = caplog.records
    assert warning.args == ("test", "3 texts", 2)


def test_texts_may_have_a_single_label(on_benchmark: OnBenchmark, run: RunDir) -> None:
    detection = on_benchmark(tiny_texts, CORRUPT, ["1", "0", "0", "0", "1"])
    found = scored(detection, 1)
    detection.write_report(run, "test", found)
    written = SpellingFiles(run).detections("test").read_text(encoding="utf-8")
    assert written == "1\n0\n0\n1\n1\n"
    assert detection.metrics("test", found)["accuracy"] == pytest.approx(2 / 3)


def test_words_without_a_label_are_not_scored(on_benchmark: OnBenchmark) -> None:
    detection = on_benchmark(tiny_words, CORRUPT, ["1", "0", "0", "0 0", "1"])
    found = scored(detection, 2)
    assert (found.sums[detection.score_sums.index("labels")], found.sums[1]) == (2, 2)
    assert np.isfinite(list(detection.metrics("test", found).values())).all()


def test_labels_of_texts_are_refused_for_words(on_benchmark: OnBenchmark) -> None:
    with pytest.raises(DataError, match=r"benchmark: no text of test has a label for each word"):
        on_benchmark(tiny_words, CORRUPT, ["1", "0", "0", "0", "1"])


def test_white_space_may_be_noise_only_if_the_tokenizer_reads_characters(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.noise: found whitespace"):
        SedWordsTask(tiny_words(tmp_path, "data.noise={kind: whitespace}"))
    save(characters(), tmp_path / "characters.json")
    reads = (f"data.tokenizer_path={tmp_path}/characters.json", "data.noise={kind: whitespace}")
    assert SedWordsTask(tiny_words(tmp_path, *reads)).splits["train"]
