"""Listed misspellings: reading, looking up, filtering, dividing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.workloads.spelling.data.noise.misspellings import (
    Misspellings,
    divide,
    merged,
    read_codespell,
    read_misspellings,
    usable,
    write_misspellings,
)

letters = st.text(alphabet="abc", min_size=1, max_size=4)
lists = st.dictionaries(letters, st.lists(letters, min_size=1, unique=True))


def test_a_codespell_line_has_a_wrong_word_and_one_or_several_right_words(tmp_path):
    path = tmp_path / "dictionary.txt"
    path.write_text(
        "teh->the\nhte->the\nclas->class, clash,\nalot->a lot\nang->and, disabled because it is a name\n",
        encoding="utf-8-sig",
    )
    assert read_codespell(path) == {
        "the": ["teh", "hte"],
        "class": ["clas"],
        "clash": ["clas"],
        "a lot": ["alot"],
        "and": ["ang"],
    }


def test_a_line_in_another_format_is_named(tmp_path):
    path = tmp_path / "dictionary.txt"
    path.write_text("teh->the\nteh the\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"dictionary\.txt:2: found 'teh the', expected wrong->right"):
        read_codespell(path)


@pytest.mark.parametrize(
    "word, misspellings",
    [
        ("the", ("teh",)),
        ("The", ("Teh",)),
        ("THE", ("TEH",)),
        ("I", ("Ii",)),
        ("tHe", ()),
        ("May", ("Mai", "Yam")),
        ("cat", ()),
    ],
)
def test_misspellings_come_in_the_case_of_the_word(word, misspellings):
    listed = Misspellings({"the": ["teh"], "i": ["ii", "I"], "may": ["yam"], "May": ["Mai"]})
    assert listed.of(word) == misspellings


def test_written_misspellings_are_sorted_with_one_word_per_line_and_can_be_read(tmp_path):
    write_misspellings(tmp_path / "m.json", {"b": ["d\nc", "c", '"'], "ä": ["e"], "a": ["f"]})
    text = (tmp_path / "m.json").read_text(encoding="utf-8")
    assert text == '{\n"a": ["f"],\n"b": ["\\"", "c", "d\\nc"],\n"ä": ["e"]\n}\n'
    assert read_misspellings(tmp_path / "m.json") == {"a": ["f"], "b": ['"', "c", "d\nc"], "ä": ["e"]}


@pytest.mark.parametrize(
    "text, problem",
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "expected a JSON object"),
        ('{"the": "teh"}', "expected a list of strings for 'the'"),
        ('{"the": [""]}', "for 'the'"),
        (None, r"m\.json cannot be read: No such file"),
    ],
)
def test_a_faulty_or_missing_file_is_refused(tmp_path, text, problem):
    path = tmp_path / "m.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        read_misspellings(path)


@pytest.mark.parametrize("text", ['{"a lot": ["alot"]}', '{"alot": ["a lot"]}', '{"": ["a"]}'])
def test_noise_takes_only_misspellings_of_single_words(tmp_path, text):
    (tmp_path / "m.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="is not one word; remove it"):
        Misspellings.load(tmp_path / "m.json")


def test_lists_are_merged_without_duplicates():
    assert merged([{"the": ["teh", "hte"]}, {"the": ["teh"], "a": ["b"]}]) == {
        "the": ["teh", "hte"],
        "a": ["b"],
    }


def test_only_words_of_letters_in_the_dictionary_and_near_misspellings_are_used():
    listed = {
        "the": ["teh", "t he", "the"],
        "Paris": ["Pariss"],
        "a lot": ["alot"],
        "1st": ["1nd"],
        "qwert": ["qwertt"],
        "accordion": ["x" * 30],
        "abcdefghijk": ["ABCDEFGHIJK", "aBCDEFGHIJK"],
    }
    assert usable(listed, {"the", "paris", "accordion", "1st", "abcdefghijk"}) == {
        "the": ["teh"],
        "Paris": ["Pariss"],
        # Ten edits; the other one has eleven.
        "abcdefghijk": ["aBCDEFGHIJK"],
    }


SHARES = {"train": 0.8, "dev": 0.1, "test": 0.1}


def pairs(listed):
    return {(word, wrong) for word, wrongs in listed.items() for wrong in wrongs}


@given(lists, st.integers(0, 1000))
def test_every_misspelling_is_in_one_split(listed, seed):
    splits = divide(listed, SHARES, seed)
    assert sorted(pair for split in splits.values() for pair in pairs(split)) == sorted(pairs(listed))
    forms = [{wrong for _, wrong in pairs(split)} for split in splits.values()]
    assert len(set().union(*forms)) == sum(map(len, forms)), "a misspelling is in two splits"


def test_the_case_of_a_misspelling_does_not_change_its_split():
    listed = {f"{n}": [f"w{n}", f"W{n}"] for n in range(50)}
    for split in divide(listed, SHARES, 22).values():
        assert all(len(wrongs) == 2 for wrongs in split.values())


def test_added_misspellings_do_not_change_the_splits_of_others():
    listed = {"the": [f"teh{n}" for n in range(200)]}
    before = divide(listed, SHARES, 22)
    after = divide(listed | {"a": ["b", "c"]}, SHARES, 22)
    assert all(pairs(before[split]) <= pairs(after[split]) for split in SHARES)


def test_splits_have_their_shares():
    listed = {"the": [f"teh{n}" for n in range(10000)]}
    sizes = {name: len(pairs(split)) for name, split in divide(listed, SHARES, 22).items()}
    assert abs(sizes["train"] - 8000) < 160
    assert abs(sizes["dev"] - 1000) < 120
    assert divide(listed, SHARES, 22) != divide(listed, SHARES, 23)


def test_shares_need_not_add_up_to_one():
    listed = {"the": [f"teh{n}" for n in range(100)]}
    assert divide(listed, {"train": 8, "dev": 1, "test": 1}, 22) == divide(listed, SHARES, 22)
