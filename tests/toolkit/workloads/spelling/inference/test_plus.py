"""All uses of a run that repairs, detects and corrects."""

from __future__ import annotations

from tests.toolkit.workloads.spelling.inference.conftest import texts_of_test
from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.files import SpellingFiles
from toolkit.workloads.spelling.inference.correcting import open_corrector
from toolkit.workloads.spelling.inference.detecting import open_detector


def test_repairs_are_those_of_the_evaluation(of_plus: RunDir, of_plus_detection: RunDir) -> None:
    for run in (of_plus, of_plus_detection):
        texts = texts_of_test(run)
        written = SpellingFiles(run).repairs("test").read_text(encoding="utf-8").splitlines()
        assert open_corrector(run, "cpu").repair(texts) == written
    # Without a decoder, the correction is the repair.
    assert open_corrector(run, "cpu").correct(texts) == written


def test_correction_of_a_text_does_not_depend_on_other_texts(of_plus: RunDir) -> None:
    corrector, texts = open_corrector(of_plus, "cpu"), texts_of_test(of_plus)
    long = " ".join(8 * texts)
    assert len(long) > 2 * corrector.opened.max_tokens
    made = corrector.correct([*texts, "", long])
    assert len(made) == len(texts) + 2
    assert made[-2] == ""
    assert made[0] == corrector.correct(texts[:1])[0]


def test_each_word_of_the_unrepaired_text_has_a_label(of_plus: RunDir, of_plus_detection: RunDir) -> None:
    texts = ["the stoen river", "", "garden " * 100, "x" * 3000]
    for run in (of_plus, of_plus_detection):
        found = open_detector(run, "cpu").detect(texts)
        assert [len(labels) for labels in found] == [3, 0, 100, 1]
