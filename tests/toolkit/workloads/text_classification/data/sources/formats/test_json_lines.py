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


def test_the_keys_are_the_names_of_the_columns_and_no_option_of_delimited_files_has_an_effect(
    file: Path,
) -> None:
    """A section may name files of both kinds."""
    columns = ("label", "text")
    data = TextTable(text_column="body", label_column="class", delimiter=";", quoted=True, columns=columns)
    assert read(file, '{"class": "ham", "body": "hello", "text": [1]}', data) == [Row(1, "hello", "ham")]


GOOD = '{"text": "x", "label": "a"}\n\n'


@pytest.mark.parametrize(
    "content, told",
    [
        *((empty, " is empty; expected one JSON object per line") for empty in ("", "\n \n", "\ufeff")),
        (GOOD + "[1, 2]", ":3: not a JSON object; expected a whole object in each line"),
        (GOOD + '"text"', ":3: not a JSON object"),
        (GOOD + "{", ":3: not JSON from character"),
        (GOOD + '{"text": "x" "label": "a"}', ":3: not JSON from character 14 on"),
        (GOOD + "[" * 200_000, ":3: nested too deep"),
        ("{}", ":1: no key 'text' and 'label', found: none"),
        *(
            (f'{{"text": "x", "label": {value}}}', f":1: 'label' is {kind}, expected a text or a number")
            for value, kind in (("true", "true or false"), ("[1]", "a list"), ("{}", "an object"))
        ),
        *(
            (f'{{"text": "{text}", "label": "{label}"}}', f":1: {(text + label)[:6]} is not a character")
            for escape in ("\\u0000", "\\ud800", "\\udc00\\ud800")
            for text, label in ((escape, ""), ("", escape))
        ),
    ],
)
def test_a_faulty_line_is_reported(file: Path, content: str, told: str) -> None:
    assert f"{file}{told}" in fault(file, content)


def test_a_missing_key_is_reported_with_the_existing_keys(file: Path) -> None:
    told = fault(file, GOOD + '{"Text": "x", "label": "a"}\n')
    assert f"{file}:3: no key 'text', found: Text, label. Set data.text_column to a key" in told
    assert "did you mean 'Text'?" in told


def test_a_pair_of_escapes_is_one_character(file: Path) -> None:
    assert read(file, '{"text": "\\ud83d\\ude00", "label": "a"}') == [Row(1, "😀", "a")]
