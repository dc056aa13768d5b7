"""Searches for whole texts, or for words that are then grouped by text."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from tests.toolkit.nlp.decoding.tables import BEGIN, END, TableModel
from toolkit.nlp.decoding.beam import beam
from toolkit.nlp.decoding.greedy import greedy
from toolkit.nlp.decoding.language_model import Limits
from toolkit.workloads.spelling.models.search import Search, write_words

LIMITS = Limits(begin=BEGIN, end=END, length=4)


def test_a_search_is_of_the_requested_kind():
    model = TableModel(6, 5, seed=3)
    found = beam(model, LIMITS, width=3)
    first = [next((one for one in each if one.complete), each[0]) for each in found]
    assert first != greedy(model, LIMITS)
    for search, best in ((Search(), greedy(model, LIMITS)), (Search(kind="beam", width=3), first)):
        written = search.write(model, LIMITS)
        assert written == [each.tokens if each.complete else None for each in best]


def test_a_sequence_that_ended_counts_more_than_those_that_were_cut():
    model = TableModel(30, 5, seed=3)
    found = beam(model, LIMITS, width=3)
    cut = [not each[0].complete and any(one.complete for one in each) for each in found]
    assert any(cut)
    written = Search(kind="beam", width=3).write(model, LIMITS)
    assert all(tokens is not None for tokens, is_cut in zip(written, cut, strict=True) if is_cut)


def test_a_sequence_without_an_end_is_none():
    short = Limits(begin=BEGIN, end=END, length=1)
    written = Search().write(TableModel(20, 5, seed=1), short)
    assert set(written) == {None, ()}


def test_words_are_grouped_by_their_texts():
    words = TableModel(3, 5, seed=3)
    model = SimpleNamespace(reading=lambda batch: (words, torch.tensor([0, 0, 2])))
    written = Search().write(words, LIMITS)
    found = write_words(model, SimpleNamespace(tokens=range(4)), Search(), LIMITS)
    assert found == [written[:2], [], written[2:], []]
