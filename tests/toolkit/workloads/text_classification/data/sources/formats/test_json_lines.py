"""JSON lines are read like tables, or refused with line, problem and advice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.workloads.text_classification.data.films import fault, read
from tests.toolkit.workloads.text_classification.data.sources.formats.test_table import FILE_PER_EXAMPLE
from toolkit.errors import DataError
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.formats.table import Row

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
OTHERS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=4,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "reviews.jsonl"


@FILE_PER_EXAMPLE
@given(
    samples=st.lists(st.tuples(TEXTS, TEXTS, OTHERS), min_size=1, max_size=6),
    ascii_only=st.booleans(),
    end=st.sampled_from(["\n", "\r\n", "\n\n"]),
)
def test_all_objects_that_json_writes_are_read_back(
    file: Path, samples: list[tuple[str, str, object]], ascii_only: bool, end: str
) -> None:
    rows = [{"id": other, "label": label, "text": text} for text, label, other in samples]
    content = "".join(json.dumps(row, ensure_ascii=ascii_only) + end for row in rows)
    step = end.count("\n")
    expected = [Row(1 + step * place, *sample[:2]) for place, sample in enumerate(samples)]
    assert read(file, content) == expected


@FILE_PER_EXAMPLE
@given(
    content=st.text(st.characters(exclude_categories=["Cs"]))
    | st.text('{}[]":,\\u0 \ntextlabel1', max_size=40)
)
def test_any_content_gives_rows_or_an_error_with_the_file(file: Path, content: str) -> None:
    try:
        assert read(file, content)
    except DataError as error:
        assert str(file) in str(error)  # noqa: PT017 (either outcome is right)


@pytest.mark.parametrize("written", ["1", "1.0", "-0.50", "1e3", "123456789012345678901234567890"])
def test_numbers_stay_as_they_are_written(file: Path, written: str) -> None:
    assert read(file, f'{{"text": "x", "label": {written}}}') == [Row(1, "x", written)]


def test_null_is_an_empty_field(file: Path) -> None:
    assert read(file, '{"text": null, "label": null}') == [Row(1, "", "")]


def test_the_keys_are_the_names_of_the_columns(file: Path) -> None:
    data = TextTable(text_column="body", label_column="class")
    assert read(file, '{"class": "ham", "body": "hello", "text": [1]}', data) == [Row(1, "hello", "ham")]


def test_options_of_delimited_files_have_no_effect(file: Path) -> None:
    """A section may name files of both kinds."""
    data = TextTable(delimiter=";", quoted=True, columns=("label", "text"))
    assert read(file, '{"text": "a;b", "label": "x"}', data) == [Row(1, "a;b", "x")]


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
def test_an_empty_file_is_refused(file: Path, content: str) -> None:
    assert "is empty; expected one JSON object per line" in fault(file, content)


@pytest.mark.parametrize(
    "line, found",
    [
        ("[1, 2]", "not a JSON object"),
        ('"text"', "not a JSON object"),
        ("{", "not JSON from character"),
        ('{"text": "x" "label": "a"}', "not JSON from character 14 on"),
        ("[" * 200_000, "nested too deep"),
    ],
)
def test_a_line_that_is_not_an_object_is_reported(file: Path, line: str, found: str) -> None:
    told = fault(file, f'{{"text": "x", "label": "a"}}\n\n{line}\n')
    assert f"{file}:3: {found}" in told
    assert "a whole object in each line" in told


def test_a_missing_key_is_reported_with_the_existing_keys(file: Path) -> None:
    told = fault(file, '{"text": "x", "label": "a"}\n{"Text": "x", "label": "a"}\n')
    assert f"{file}:2: no key 'text', found: Text, label" in told
    assert "data.text_column" in told
    assert "did you mean 'Text'?" in told
    assert "no key 'text' and 'label', found: none" in fault(file, "{}")


@pytest.mark.parametrize("value, found", [("true", "true or false"), ("[1]", "a list"), ("{}", "an object")])
def test_a_value_that_is_neither_text_nor_number_is_reported(file: Path, value: str, found: str) -> None:
    told = fault(file, f'{{"text": "x", "label": {value}}}')
    assert f"{file}:1: 'label' is {found}, expected a text or a number" in told


@pytest.mark.parametrize("escape", ["\\u0000", "\\ud800", "\\udc00\\ud800"])
@pytest.mark.parametrize("name", ["text", "label"])
def test_an_escape_that_is_not_a_character_is_reported(file: Path, name: str, escape: str) -> None:
    row = {"text": '"x"', "label": '"a"'} | {name: f'"{escape}"'}
    told = fault(file, f'{{"text": {row["text"]}, "label": {row["label"]}}}')
    assert f"{file}:1: {escape[:6]} is not a character" in told


def test_a_pair_of_escapes_is_one_character(file: Path) -> None:
    assert read(file, '{"text": "\\ud83d\\ude00", "label": "a"}') == [Row(1, "😀", "a")]
