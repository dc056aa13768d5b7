"""Any model, even an untrained one, writes one word for each word that it reads."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.inference.correcting import Corrector, open_corrector

_WORDS = st.lists(st.text("abé,.1x", min_size=1, max_size=9), min_size=1, max_size=6)
_LINES = st.lists(_WORDS.map(" ".join), min_size=1, max_size=4)
#: Several passages; one of them is a word that is too long.
_LONG = " ".join(["the stoen, rivver"] * 60 + ["x" * 400] + ["under"] * 60)


@pytest.fixture(scope="module", params=["of_word_corrections", "of_plus"])
def corrector(request: pytest.FixtureRequest) -> Corrector:
    return open_corrector(request.getfixturevalue(request.param), "cpu")


def untrained(corrector: Corrector, seed: int, **options: object) -> Corrector:
    """Return the corrector with random weights, which mostly write the end token or a space."""
    torch.manual_seed(seed)
    for values in corrector.opened.model.parameters():
        torch.nn.init.normal_(values)
    output = corrector.opened.encoder.output
    assert output is not None
    (space,) = output.encode(" ")
    scores = corrector.opened.model.decoder.embedding.table.weight.data
    scores *= 0.05
    scores[output.end] = torch.randn(scores.shape[1])
    scores[space] = -scores[output.end]
    experiment = corrector.opened.experiment
    length = "max_word_length" if hasattr(experiment.model, "max_word_length") else "max_output_length"
    # Short, because such models often write no end token.
    model, task = replace(experiment.model, **{length: 6}), replace(experiment.task, **options)
    return Corrector(replace(corrector.opened, experiment=replace(experiment, task=task, model=model)))


def words_read(corrector: Corrector, lines: list[str]) -> list[int]:
    """Return the number of words that the model reads; it may repair white space first."""
    repairs = corrector.opened.experiment.task.kind == "tokenization_repair_plus"
    read = corrector.repair(lines) if repairs else lines
    return [len(line.split()) for line in read]


@pytest.mark.parametrize("search", ["greedy", "beam", "best_first"])
@given(seed=st.integers(0, 10**6), lines=_LINES)
@settings(max_examples=3)
def test_no_search_loses_a_word(corrector: Corrector, search: str, seed: int, lines: list[str]) -> None:
    random = untrained(corrector, seed, search=search, beam_width=2)
    made = random.correct(lines)
    assert [len(line.split()) for line in made] == words_read(random, lines)


@pytest.mark.parametrize("seed", [1, 2])
def test_no_word_of_a_long_text_is_lost(corrector: Corrector, seed: int) -> None:
    random = untrained(corrector, seed)
    (made,) = random.correct([_LONG])
    assert [len(made.split())] == words_read(random, [_LONG])


@given(seed=st.integers(0, 10**6), lines=_LINES, data=st.data())
@settings(max_examples=3)
def test_texts_without_marked_words_stay_unchanged(
    corrector: Corrector, seed: int, lines: list[str], data: st.DataObject
) -> None:
    words = [line.split() for line in lines]
    labels = [[data.draw(st.integers(0, 1)) for _ in each] for each in words]
    made = untrained(corrector, seed).correct(lines, labels)
    is_by_word = corrector.opened.experiment.task.kind == "sec_words_nmt"
    for line, own, marks in zip(made, words, labels, strict=True):
        assert line.split() if any(marks) else line.split() == own
        if is_by_word:
            pairs = zip(line.split(), own, marks, strict=True)
            assert all(word == before for word, before, is_marked in pairs if not is_marked)


@pytest.fixture(scope="module")
def anew(of_corrections: RunDir) -> Corrector:
    return open_corrector(of_corrections, "cpu")


@given(seed=st.integers(0, 10**6), lines=_LINES)
@settings(max_examples=3)
def test_a_corrected_text_is_never_empty(anew: Corrector, seed: int, lines: list[str]) -> None:
    made = untrained(anew, seed).correct([*lines, _LONG])
    assert all(line.split() for line in made)
