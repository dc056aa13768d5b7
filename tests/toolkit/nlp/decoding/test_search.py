"""Searches over small tables in which every sequence can be enumerated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toolkit.nlp.decoding.tables import BEGIN, END, TableModel
from toolkit.nlp.decoding.beam import beam
from toolkit.nlp.decoding.best_first import best_first
from toolkit.nlp.decoding.greedy import greedy
from toolkit.nlp.decoding.language_model import Found, LanguageModel, Limits

LIMITS = Limits(begin=BEGIN, end=END, length=4)

models = st.builds(
    TableModel,
    inputs=st.integers(1, 3),
    vocabulary=st.integers(3, 5),
    seed=st.integers(0, 10_000),
    sharpness=st.sampled_from([0.3, 1.0, 3.0]),
)
few = settings(max_examples=40, deadline=None)


def first_of_beam(model: LanguageModel, limits: Limits) -> list[Found]:
    return [each[0] for each in beam(model, limits, width=3)]


SEARCHES: dict[str, Callable[[LanguageModel, Limits], list[Found]]] = {
    "greedy": greedy,
    "beam": first_of_beam,
    "best_first": lambda model, limits: best_first(model, limits, budget=6),
}


@pytest.mark.parametrize("name", list(SEARCHES))
@few
@given(models, st.integers(1, 4))
def test_sequences_stay_within_the_limit_and_have_the_scores_of_the_model(
    name: str, model: TableModel, length: int
) -> None:
    limits = Limits(begin=BEGIN, end=END, length=length)
    found = SEARCHES[name](model, limits)
    assert len(found) == len(model)
    for row, each in enumerate(found):
        assert each.written <= length
        assert END not in each.tokens
        path = (*each.tokens, END) if each.complete else each.tokens
        wanted = sum(
            float(model.scores(row, (BEGIN, *path[:place]))[token]) for place, token in enumerate(path)
        )
        assert each.log_probability == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("name", list(SEARCHES))
@few
@given(model=models, lengths=st.lists(st.integers(1, 5), min_size=3, max_size=3))
def test_an_input_with_a_shorter_limit_is_searched_as_if_alone(
    name: str, model: TableModel, lengths: list[int]
) -> None:
    together = SEARCHES[name](model, replace(LIMITS, lengths=lengths))
    for row, found in enumerate(together):
        alone = replace(LIMITS, length=min(LIMITS.length, lengths[row]))
        (expected,) = SEARCHES[name](_Only(model, row), alone)
        assert (found.tokens, found.complete) == (expected.tokens, expected.complete)


@few
@given(models)
def test_beam_of_width_one_is_greedy(model: TableModel) -> None:
    narrow = [each for (each,) in beam(model, LIMITS, width=1)]
    for one, other in zip(narrow, greedy(model, LIMITS), strict=True):
        assert (one.tokens, one.complete) == (other.tokens, other.complete)
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-5)


@few
@given(models)
def test_a_beam_wider_than_the_search_space_ranks_every_sequence(model: TableModel) -> None:
    limits = Limits(begin=BEGIN, end=END, length=3)
    for row, found in enumerate(beam(model, limits, width=200)):
        every = [total / (len(tokens) + complete) for total, tokens, complete in model.every(row, limits)]
        values = [each.log_probability / max(each.written, 1) for each in found]
        assert values == pytest.approx(sorted(every, reverse=True), abs=1e-5)


@few
@given(models)
def test_best_first_with_enough_budget_finds_the_most_probable_sequence(model: TableModel) -> None:
    for row, found in enumerate(best_first(model, LIMITS, budget=10_000)):
        total, tokens, complete = max(model.every(row, LIMITS))
        assert found.log_probability == pytest.approx(total, abs=1e-5)
        assert (found.tokens, found.complete) == (tokens, complete)


def test_best_first_with_one_branch_is_greedy() -> None:
    model = TableModel(3, 5, 7)
    found = best_first(model, LIMITS, budget=10, branches=1)
    assert [each.tokens for each in found] == [each.tokens for each in greedy(model, LIMITS)]


def test_best_first_returns_a_sequence_when_its_budget_is_used_up() -> None:
    model = TableModel(2, 5, 7, sharpness=0.0)
    (found, _) = best_first(model, Limits(begin=BEGIN, end=END, length=9), budget=2)
    assert found.complete or found.tokens


@pytest.mark.parametrize("name", list(SEARCHES))
def test_an_empty_batch_gives_no_results(name: str) -> None:
    assert SEARCHES[name](TableModel(0, 4, 1), LIMITS) == []


class _Only(TableModel):
    """One input of a table by itself."""

    def __init__(self, of: TableModel, row: int) -> None:
        super().__init__(1, of._vocabulary, of._seed, of._sharpness)
        self._row = row

    def scores(self, row: int, path: tuple[int, ...]) -> torch.Tensor:
        return super().scores(self._row, path)
