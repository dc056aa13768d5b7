"""A finished run corrects texts of any length, in the same way as in its evaluation."""

from __future__ import annotations

import pytest

from tests.tiers import first_quick
from tests.toolkit.workloads.spelling.inference.conftest import texts_of_test
from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.files import SpellingFiles
from toolkit.workloads.spelling.inference.correcting import open_corrector


@pytest.fixture(params=first_quick(["of_corrections", "of_word_corrections", "of_repaired_corrections"]))
def run(request: pytest.FixtureRequest) -> RunDir:
    return request.getfixturevalue(request.param)


def test_corrections_are_those_of_the_evaluation(run: RunDir) -> None:
    texts = texts_of_test(run)
    found = open_corrector(run, "cpu").correct(texts)
    assert found == SpellingFiles(run).corrections("test").read_text(encoding="utf-8").splitlines()


def test_texts_without_words_stay_empty(run: RunDir) -> None:
    found = open_corrector(run, "cpu").correct(["", " \t ", "the river"])
    assert len(found) == 3
    assert found[:2] == ["", ""]
    assert open_corrector(run, "cpu").correct([]) == []


def test_long_texts_and_long_words_are_corrected_by_any_model(
    run: RunDir, of_repaired_corrections: RunDir
) -> None:
    texts = ["the river " * 150, "x" * 3000, f"the {'é' * 3000} stoen"]
    found = open_corrector(run, "cpu").correct(texts)
    assert len(found) == 3
    if run.run_id != of_repaired_corrections.run_id:
        # A word that is too long for a passage is not lost.
        assert found[1] == texts[1]
        assert texts[2].split()[1] in found[2].split()


def test_only_marked_words_are_corrected(of_word_corrections: RunDir) -> None:
    corrector, texts = open_corrector(of_word_corrections, "cpu"), texts_of_test(of_word_corrections)
    made = corrector.correct(texts)
    assert made != texts
    assert corrector.correct(texts, [[0] * len(text.split()) for text in texts]) == texts
    assert corrector.correct(texts, [[1] * len(text.split()) for text in texts]) == made


@pytest.mark.parametrize("kind", ["beam", "best_first"])
def test_the_search_can_be_changed(of_corrections: RunDir, kind: str) -> None:
    texts = texts_of_test(of_corrections)[:3]
    narrow = open_corrector(of_corrections, "cpu", options={"search": kind, "beam_width": 1})
    # With a width of 1, all searches find the same.
    assert narrow.correct(texts) == open_corrector(of_corrections, "cpu").correct(texts)
    wider = open_corrector(of_corrections, "cpu", options={"search": kind, "beam_width": 3})
    assert len(wider.correct(texts)) == 3


@pytest.mark.parametrize("name", ["of_repairs", "of_plus", "of_plus_detection"])
def test_repairs_are_those_of_the_evaluation(name: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue(name)
    corrector, texts = open_corrector(run, "cpu"), texts_of_test(run)
    written = SpellingFiles(run).repairs("test").read_text(encoding="utf-8").splitlines()
    assert corrector.repair(texts) == written != texts
    if name != "of_plus":
        # Without a decoder, the correction is the repair.
        assert corrector.correct(texts) == written


def test_correction_of_a_text_does_not_depend_on_other_texts(of_plus: RunDir) -> None:
    corrector, texts = open_corrector(of_plus, "cpu"), texts_of_test(of_plus)
    long = " ".join(8 * texts)
    assert len(long) > 2 * corrector.opened.max_tokens
    made = corrector.correct([*texts, "", long])
    assert len(made) == len(texts) + 2
    assert made[-2] == ""
    assert made[0] == corrector.correct(texts[:1])[0]


def test_repairs_of_long_texts_change_only_white_space(of_repairs: RunDir) -> None:
    corrector, texts = open_corrector(of_repairs, "cpu"), texts_of_test(of_repairs)
    long = [" ".join(20 * texts), "".join(20 * texts).replace(" ", ""), " ".join("".join(20 * texts))]
    assert all(len(text) > 2 * corrector.opened.max_tokens for text in long)
    for text, made in zip(long, corrector.correct(long), strict=True):
        assert "".join(made.split()) == "".join(text.split())
