"""Sentences are read from lines; faults are reported with file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.workloads.entity_disambiguation.data.entities.files import record, write
from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.data.entities.jsonlines import Line
from toolkit.workloads.entity_disambiguation.data.entities.sentences import parse_sentence, read_sentences


def only(path: Path) -> Any:
    (sentence,) = read_sentences(path)
    return sentence


def test_a_sentence_has_the_characters_of_its_mentions(tmp_path: Path) -> None:
    sentence = only(write(tmp_path / "s.jsonl", [record()]))
    first, second = sentence.mentions
    assert sentence.text[slice(*first.characters)] == "Ivory Coast"
    assert (first.alias, first.gold, first.is_gold) == ("ivory coast", "Q1008", True)
    assert sentence.text[slice(*second.characters)] == "Vietnam"
    assert not second.is_gold
    assert (sentence.id, sentence.line, sentence.source) == (7, 1, ("Q3403125", "Prikro"))
    assert sentence.record == record()


def test_spans_of_characters_take_priority_over_spans_of_words(tmp_path: Path) -> None:
    sentence = only(write(tmp_path / "s.jsonl", [record(char_spans=[[0, 6], [34, 41]])]))
    assert [mention.characters for mention in sentence.mentions] == [(0, 6), (34, 41)]


def test_each_mention_has_its_probabilities_of_slices(tmp_path: Path) -> None:
    slices = {"hard": {"0": 0.25, "1": 1}, "odd": {"0": 0.0, "1": 0.5}}
    first, second = only(write(tmp_path / "s.jsonl", [record(slices=slices)])).mentions
    assert first.slices == {"hard": 0.25, "odd": 0.0}
    assert second.slices == {"hard": 1.0, "odd": 0.5}


def test_a_sentence_needs_neither_mentions_nor_source(tmp_path: Path) -> None:
    line = record(aliases=[], spans=[], qids=[], gold=[], slices={"a": {}}, parent_qid=None)
    sentence = only(write(tmp_path / "s.jsonl", [line]))
    assert (sentence.mentions, sentence.source) == ((), None)


def test_a_byte_order_mark_before_the_first_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(f"{json.dumps(record())}\n", encoding="utf-8-sig")
    assert only(path).record == record()
    path.write_text(f"\ufeff\n{json.dumps(record())}\n", encoding="utf-8")
    assert only(path).line == 2
    path.write_text(f"\n\ufeff{json.dumps(record())}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"s\.jsonl:2: not JSON"):
        only(path)


def test_blank_lines_count_in_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(f"{json.dumps(record())}\n\n{json.dumps(record(sent_idx_unq=8))}\n\n")
    assert [sentence.line for sentence in read_sentences(path)] == [1, 3]


@pytest.mark.parametrize(
    "changes, problem",
    [
        ({"sentence": None}, "sentence is missing, expected a text"),
        ({"sentence": 3}, "sentence is a number, expected a text"),
        ({"sent_idx_unq": None}, "sent_idx_unq is missing"),
        ({"sent_idx_unq": "7"}, "sent_idx_unq is a text, expected a whole number"),
        ({"sent_idx_unq": True}, "sent_idx_unq is true or false"),
        ({"sent_idx_unq": 1 << 70}, "does not fit into 64 bits"),
        ({"aliases": "vietnam"}, "aliases is a text, expected a list of texts"),
        ({"aliases": ["ivory coast", 5]}, r"aliases\[1\] is a number"),
        ({"gold": None}, "gold is missing"),
        ({"gold": [True]}, "gold has 1 entries, aliases has 2; each alias needs one"),
        ({"gold": [1, 0]}, r"gold\[0\] is a number, expected a list of true \(gold\) or false"),
        ({"qids": ["Q1"]}, "qids has 1 entries, aliases has 2"),
        ({"qids": ["Q1", None]}, r"qids\[1\] is null"),
        ({"spans": None}, "spans and char_spans are missing"),
        ({"spans": [[3, 5]]}, "spans has 1 entries, aliases has 2"),
        ({"spans": [[3, 5], [8]]}, r"spans has \[8\], expected \[start, end\]"),
        ({"spans": [[3, 5], [8, 9.5]]}, r"expected \[start, end\] in whole numbers"),
        ({"spans": [[3, 5], [8, 11]]}, r"spans: words \[8, 11\] lie outside the text, which has 10 words"),
        ({"spans": [[5, 3], [8, 9]]}, "the end must be after the start"),
        ({"spans": [[5, 5], [8, 9]]}, "the end must be after the start"),
        ({"spans": [[-1, 1], [8, 9]]}, "lie outside the text"),
        ({"char_spans": [[0, 6], [40, 44]]}, r"char_spans: characters \[40, 44\] lie outside the text"),
        ({"char_spans": [[-3, 6], [0, 4]]}, "lie outside the text"),
        (
            {"slices": {"a": {"0": 1.0}}},
            r'slices.a has keys 0, expected a probability for each alias: "0" to "1"',
        ),
        ({"slices": {"a": {"0": 1, "1": 1, "2": 1}}}, "slices.a has keys 0, 1, 2"),
        ({"slices": {"a": [1, 1]}}, "slices.a has a list"),
        ({"slices": {"a": {"0": 1, "1": 1.5}}}, "slices.a.1 is 1.5, expected a number from 0 to 1"),
        ({"slices": {"a": {"0": 1, "1": True}}}, "slices.a.1 is true"),
        ({"slices": {"final_loss": {"0": 1, "1": 1}}}, "the name final_loss is reserved"),
        ({"parent_qid": 5}, "parent_qid is a number"),
    ],
)
def test_a_faulty_value_is_reported_with_its_line(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    path = write(tmp_path / "s.jsonl", [record(sent_idx_unq=1), record(**changes)])
    with pytest.raises(DataError, match=rf"^{path}:2: .*{problem}"):
        list(read_sentences(path))


def test_equal_ids_are_reported_with_both_lines(tmp_path: Path) -> None:
    numbers = (5, 4, 3, 4, 5)
    path = write(tmp_path / "s.jsonl", [record(sent_idx_unq=number) for number in numbers])
    with pytest.raises(DataError, match=rf"^{path}:4: sent_idx_unq 4 is also that of line 2"):
        list(read_sentences(path))


@pytest.mark.parametrize(
    "line, problem",
    [
        (b"{", "not JSON at character 2"),
        (b"[]", "found a list, expected an object"),
        (b'{"sentence": "\xff"}', "byte 15 is not UTF-8"),
        (b'{"sent_idx_unq": ' + b"9" * 5000 + b"}", "cannot be read: Exceeds the limit"),
        (b'{"sentence": "cut \\ud83d"}', r"holds half a character \('.ud83d'\)"),
    ],
)
def test_a_line_that_is_not_an_object_is_reported(tmp_path: Path, line: bytes, problem: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(json.dumps(record()).encode() + b"\n" + line + b"\n")
    with pytest.raises(DataError, match=f"^{path}:2: {problem}"):
        list(read_sentences(path))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.floats() | st.sampled_from(["", "0", "1", "a b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["0", "1", "x"]), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*record(), "char_spans", "slices"]), _JSON, max_size=3))
def test_any_line_is_a_sentence_or_an_error_with_its_line(changes: dict[str, Any]) -> None:
    line = Line(Path("s.jsonl"), 4, record() | changes)
    try:
        sentence, problem = parse_sentence(line), ""
    except DataError as error:
        sentence, problem = None, str(error)
    assert sentence is not None or problem.startswith("s.jsonl:4: ")
    for mention in sentence.mentions if sentence else ():
        start, end = mention.characters
        assert 0 <= start < end <= len(sentence.text)


def test_an_escaped_pair_of_surrogates_is_one_character(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(record(sentence="\U0001f600 is in Ivory Coast , not in Vietnam .")))
    assert only(path).text.startswith("\U0001f600")
