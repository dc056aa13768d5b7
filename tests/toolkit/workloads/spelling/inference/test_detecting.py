"""A finished run finds errors in texts of any length, in the same way as in its evaluation."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
import torch

from tests.tiers import first_quick
from tests.toolkit.gpu.device import pretended_device
from tests.toolkit.support.tiny import tiny
from tests.toolkit.support.tiny_training import Attempt, Lab
from tests.toolkit.workloads.spelling.inference.conftest import texts_of_test
from toolkit.errors import CheckpointError, DataError, UserError
from toolkit.nlp.exported_files import ExportedFiles
from toolkit.run.run_dir import RunDir
from toolkit.task import task_class
from toolkit.workloads.spelling.files import SpellingFiles
from toolkit.workloads.spelling.inference.detecting import open_detector


@pytest.fixture(params=first_quick(["of_words", "of_graphs", "of_texts"]))
def run(request: pytest.FixtureRequest) -> RunDir:
    return request.getfixturevalue(request.param)


def test_labels_are_those_of_the_evaluation(run: RunDir) -> None:
    found = open_detector(run, "cpu").detect(texts_of_test(run))
    written = SpellingFiles(run).detections("test").read_text().splitlines()
    assert found == [[*map(int, line.split())] for line in written]
    assert {1, 0} == {label for labels in found for label in labels}


def test_a_gpu_computes_as_in_the_evaluation(of_words: RunDir) -> None:
    """cuDNN's attention plans anew for each length of a batch, and TF32 rounds otherwise."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    # As torch begins: an earlier test of this process may have changed it.
    cuda.enable_cudnn_sdp(True)
    cudnn.allow_tf32 = True
    found = []
    with pretended_device():
        detector = open_detector(of_words, "cuda")
        kind: Any = task_class(detector.opened.experiment)
        detect = kind.detect

        def noted(*arguments: Any) -> Any:
            found.append((cuda.cudnn_sdp_enabled(), cudnn.allow_tf32))
            return detect(*arguments)

        with patch.object(kind, "detect", noted):
            detector.detect(texts_of_test(of_words))
    assert set(found) == {(False, False)}
    assert (cuda.cudnn_sdp_enabled(), cudnn.allow_tf32) == (True, True)


def test_texts_of_any_length_have_a_label_for_each_word(of_words: RunDir) -> None:
    detector, texts = open_detector(of_words, "cpu"), 4 * texts_of_test(of_words)
    long = " ".join(texts)
    assert len(long.split()) > 2 * detector.opened.max_tokens
    said = [label for labels in detector.detect(texts) for label in labels]
    (found,) = detector.detect([long])
    assert len(found) == len(said)
    # Not all are equal, because the context of the words differs.
    assert sum(a == b for a, b in zip(found, said, strict=True)) > 0.95 * len(said)


def test_a_word_that_is_too_long_has_a_label_and_does_not_change_others(of_words: RunDir) -> None:
    detector = open_detector(of_words, "cpu")
    texts = ["the river", "x" * 5000, f"the {'é' * 5000} stoen river", "한" * 300]
    alone = detector.detect(["the stoen river"])[0]
    found = detector.detect(texts)
    assert [len(labels) for labels in found] == [2, 1, 4, 1]
    assert [found[2][place] for place in (0, 2, 3)] == alone


def test_texts_without_words_have_no_labels(of_words: RunDir, of_texts: RunDir) -> None:
    texts = ["", "  \t ", "the river"]
    assert [len(labels) for labels in open_detector(of_words, "cpu").detect(texts)] == [0, 0, 2]
    found = open_detector(of_texts, "cpu").detect(texts)
    assert found[:2] == [[0], [0]]
    assert open_detector(of_words, "cpu").detect([]) == []


def test_each_word_of_the_unrepaired_text_has_a_label(of_plus: RunDir, of_plus_detection: RunDir) -> None:
    texts = ["the stoen river", "", "garden " * 100, "x" * 3000]
    for run in (of_plus, of_plus_detection):
        found = open_detector(run, "cpu").detect(texts)
        assert [len(labels) for labels in found] == [3, 0, 100, 1]


def test_a_long_text_has_the_highest_probability_of_its_passages(of_texts: RunDir) -> None:
    detector = open_detector(of_texts, "cpu")
    long = f"{'the river over ' * 40} stoen rvier {'bridge, garden ' * 40}"
    ((passages, _),) = detector.opened.answers("detect", [long], by_words=True)
    assert len(passages) > 2
    alone = [each for (each,) in detector.probabilities([passage.text for passage in passages])]
    ((found,),) = detector.probabilities([long])
    assert found == pytest.approx(max(alone), abs=1e-5)
    assert min(alone) < found


def test_damaged_weights_are_refused(copy: RunDir) -> None:
    weights = copy.best.resolve() / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    with pytest.raises(CheckpointError, match="safetensors"):
        open_detector(copy, "cpu")


def test_runs_that_cannot_detect_are_refused(lab: Lab, copy: RunDir) -> None:
    other = lab.train(tiny(lab.folder / "tiny"), Attempt())
    with pytest.raises(UserError, match=r"a run of toy_texts.*expected one of sed_words"):
        open_detector(other, "cpu")
    (ExportedFiles(copy).encoding / "tokenizer.json").unlink()
    with pytest.raises(DataError, match=r"encoding has no tokenizer\.json"):
        open_detector(copy, "cpu")
    copy.result.unlink()
    with pytest.raises(UserError, match="has not finished"):
        open_detector(copy, "cpu")
