"""Dictionaries: reading, writing, counting, and the words that are real by them.

Benchmarks and evaluations of runs use the same rule.
"""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.workloads.spelling.data.texts.dictionary import (
    count_words,
    most_frequent,
    read_dictionary,
    write_dictionary,
)
from toolkit.workloads.spelling.data.texts.features import RealWords

counts = st.dictionaries(st.sampled_from("abcdefg"), st.integers(1, 5))


def test_a_written_dictionary_is_read_in_its_order(tmp_path):
    words = {"the": 12, "Ökonomie": 3, "don't": 1}
    write_dictionary(tmp_path / "d.txt", words)
    assert (tmp_path / "d.txt").read_text(encoding="utf-8") == "the\t12\nÖkonomie\t3\ndon't\t1\n"
    assert list(read_dictionary(tmp_path / "d.txt").items()) == list(words.items())


@pytest.mark.parametrize(
    "line, problem",
    [
        ("the 12", r"d\.txt:2: found 'the 12', expected a word, a tab and a number"),
        ("the\t-1", "expected a word"),
        (f"the\t{'9' * 5000}", "expected a word"),
        ("\t1", "expected a word"),
        ("", "expected a word"),
        ("a\t1", "'a' is listed twice"),
    ],
)
def test_a_faulty_line_is_named(tmp_path, line, problem):
    (tmp_path / "d.txt").write_text(f"a\t2\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        read_dictionary(tmp_path / "d.txt")


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "d.txt").write_bytes(b"caf\xe9\t1\n")
    with pytest.raises(DataError, match=r"d\.txt is not UTF-8"):
        read_dictionary(tmp_path / "d.txt")


def test_words_are_counted_case_sensitively_without_punctuation_around_them():
    lines = ['The "cat" sat.', "the cat's 2,000 € at a@b.org, sat; the B2B"]
    assert count_words(lines) == {"The": 1, "cat": 1, "sat": 2, "the": 2, "cat's": 1, "at": 1, "B2B": 1}


@given(counts, st.integers(0, 8))
def test_the_most_frequent_words_come_first_in_a_fixed_order(words, n):
    backwards = dict(reversed(words.items()))
    kept = list(most_frequent(words, n).items())
    assert kept == list(most_frequent(backwards, n).items())
    assert kept == sorted(words.items(), key=lambda pair: (-pair[1], pair[0]))[:n]


def test_rare_words_are_left_out():
    assert most_frequent({"a": 3, "b": 1, "c": 2}, at_least=2) == {"a": 3, "c": 2}


@example("Rome don't a A", {"Rome", "don't", "a"})
@given(st.text("abA1.,–’' ", max_size=20), st.sets(st.sampled_from(["a", "A", "ab", "b", "a'b", "–", "1"])))
def test_real_words_follow_the_published_rule(line: str, dictionary: set[str]) -> None:
    pieces = [re.findall(r"\w\S+\w|\w+|[^\w\s]+", word) for word in line.split()]
    published = [
        all(piece in dictionary or set(piece) <= set(string.punctuation) for piece in each) for each in pieces
    ]
    assert RealWords(dictionary).of(line.split()).tolist() == published
