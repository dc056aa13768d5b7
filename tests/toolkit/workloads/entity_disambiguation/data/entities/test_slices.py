"""Slices by how often training has seen the gold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.workloads.entity_disambiguation.data.entities.files import PROFILES, record, write
from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.config import BUILT_SLICES, HEAD_ABOVE, TORSO_ABOVE
from toolkit.workloads.entity_disambiguation.data.entities.contents import Contents
from toolkit.workloads.entity_disambiguation.data.entities.database import EntityDatabase, import_profiles
from toolkit.workloads.entity_disambiguation.data.entities.rewriting import convert, write_slices
from toolkit.workloads.entity_disambiguation.data.entities.sentences import read_sentences
from toolkit.workloads.entity_disambiguation.data.entities.slices import GoldCounts, Survey, built_slices

COUNTS = np.array([0, 1, 10, 11, 1000, 1001])
TWO = np.full(6, 2)
YES = np.ones(6, bool)
DEFAULTS = {"torso_above": TORSO_ABOVE, "head_above": HEAD_ABOVE}


def members(name: str) -> list[int]:
    return COUNTS[built_slices(COUNTS, TWO, YES, **DEFAULTS)[name]].tolist()


def test_mentions_are_in_the_slices_of_their_counts() -> None:
    assert members("unif_all") == [0, 1, 10, 11, 1000, 1001]
    assert members("unif_TS") == [0]
    assert members("unif_TL") == [0, 1, 10]
    assert members("unif_TO") == [11, 1000]
    assert members("unif_HD") == [1001]


def test_ns_keeps_mentions_with_several_candidates_and_npop_unpopular_golds() -> None:
    slices = built_slices(
        np.array([0, 0, 2000, 2000]), np.array([1, 2, 2, 1]), np.array([True, False, False, True]), **DEFAULTS
    )
    assert slices["unif_NS_all"].tolist() == [False, True, True, False]
    assert slices["unif_NS_TS"].tolist() == [False, True, False, False]
    assert slices["unif_NPOP_all"].tolist() == [False, True, True, False]
    assert slices["unif_NPOP_HD"].tolist() == [False, False, True, False]


def test_every_name_of_a_built_slice_has_a_slice() -> None:
    assert set(built_slices(COUNTS, TWO, YES, **DEFAULTS)) == set(BUILT_SLICES)


@given(
    st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 5), st.booleans()), min_size=1),
    st.integers(0, 50),
    st.integers(0, 2000),
)
def test_head_torso_and_tail_together_are_all_mentions(
    mentions: list[tuple[int, int, bool]], torso_above: int, more: int
) -> None:
    count, candidates, popular = (np.array(column) for column in zip(*mentions, strict=True))
    slices = built_slices(count, candidates, popular, torso_above=torso_above, head_above=torso_above + more)
    for kept in ("unif_", "unif_NS_", "unif_NPOP_"):
        parts = [slices[kept + part].astype(int) for part in ("HD", "TO", "TL")]
        assert (sum(parts) == slices[kept + "all"]).all()
        assert (slices[kept + "TL"] | ~slices[kept + "TS"]).all()


# ---- counts of training


def test_golds_are_counted_with_and_without_weak_labels(tmp_path: Path) -> None:
    lines = [record(sent_idx_unq=1), record(sent_idx_unq=2, qids=["Q-1", "Q881"])]
    path = write(tmp_path / "s.jsonl", lines)
    assert GoldCounts.of(read_sentences(path)).entities == {"Q1008": 1, "Q881": 2}
    assert GoldCounts.of(read_sentences(path), count_weak=False).entities == {"Q1008": 1}
    assert GoldCounts.of(read_sentences(path)).aliases["vietnam"] == {"Q881": 2}


# ---- against a database


def database(folder: Path) -> EntityDatabase:
    return import_profiles(write(folder / "p.jsonl", PROFILES))


def test_mentions_are_looked_up_in_their_order(tmp_path: Path) -> None:
    lines = [
        record(sent_idx_unq=1, gold=[True, True], qids=["Q1008", "Q180573"]),
        record(sent_idx_unq=2, gold=[True, False]),
        record(sent_idx_unq=3, gold=[True, True], qids=["Q-1", "Q5"]),
    ]
    path = write(tmp_path / "s.jsonl", lines)
    survey = Survey.of(path, database(tmp_path), {"Q1008": 4, "Q881": 2})
    assert survey.mentions["gold"].tolist() == [0, 1, 0, -1, -1, -2]
    assert survey.mentions["count"].tolist() == [4, 0, 4, 2, 0, 0]
    assert survey.mentions["candidates"].tolist() == [1, 2, 1, 2, 1, 2]
    assert survey.mentions["popular"].tolist() == [True, False, True, True, False, False]
    first, *_ = survey.rows(survey.slices(torso_above=1, head_above=3))
    assert first == {
        "slice": "final_loss",
        "mentions": 4,
        "gold_outside": 1,
        "candidates": 1.5,
        "chance": 2.5 / 4,
        "popularity": 0.5,
    }


def test_slices_are_added_to_the_slices_of_the_file(tmp_path: Path) -> None:
    lines = [record(sent_idx_unq=1, slices={"mine": {"0": 0.5, "1": 1.0}}), record(sent_idx_unq=2)]
    path = write(tmp_path / "s.jsonl", lines)
    slices = {"unif_TS": np.array([True, False, False, True])}
    assert write_slices(path, tmp_path / "new" / "out.jsonl", slices) == 2
    one, two = (json.loads(line) for line in (tmp_path / "new" / "out.jsonl").read_text().splitlines())
    assert one["slices"] == {"mine": {"0": 0.5, "1": 1.0}, "unif_TS": {"0": 1.0, "1": 0.0}}
    assert two["slices"] == {"unif_TS": {"0": 0.0, "1": 1.0}}
    assert two == record(sent_idx_unq=2) | {"slices": two["slices"]}
    assert [len(each.mentions) for each in read_sentences(tmp_path / "new" / "out.jsonl")] == [2, 2]


def test_converted_sentences_have_both_kinds_of_spans(tmp_path: Path) -> None:
    words, characters = [[3, 5], [8, 9]], [[13, 24], [34, 41]]
    lines = [record(sent_idx_unq=1), record(sent_idx_unq=2, spans=None, char_spans=characters)]
    assert convert(write(tmp_path / "s.jsonl", lines), tmp_path / "out.jsonl") == 2
    for line in (tmp_path / "out.jsonl").read_text().splitlines():
        assert (json.loads(line)["spans"], json.loads(line)["char_spans"]) == (words, characters)


def test_a_blank_span_cannot_be_converted(tmp_path: Path) -> None:
    lines = [record(spans=None, char_spans=[[6, 7], [0, 6]])]
    path = write(tmp_path / "s.jsonl", lines)
    with pytest.raises(DataError, match=rf"^{path}:1: char_spans: characters \[6, 7\] are blank"):
        convert(path, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_an_alias_without_candidates_is_reported_with_its_line(tmp_path: Path) -> None:
    lines = [record(sent_idx_unq=1), record(sent_idx_unq=2, aliases=["ivory coast", "viet nam"])]
    path = write(tmp_path / "s.jsonl", lines)
    _, sentence = read_sentences(path)
    with pytest.raises(DataError, match=rf"^{path}:2: aliases\[1\] 'viet nam' is not in the database"):
        database(tmp_path).check_aliases(sentence, path)
    empty = EntityDatabase(Contents(candidates={"ivory coast": [("Q1", 1)], "viet nam": []}))
    with pytest.raises(DataError, match=rf"^{path}:2: aliases\[1\] 'viet nam' has no candidates"):
        empty.check_aliases(sentence, path)
