"""`key=a,b` and `key=uniform(a,b)`: where a value ends, and what a range is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from toolkit.config.composition.yaml_files import parse
from toolkit.errors import UserError
from toolkit.sweeps.command_line import read_space, split_values
from toolkit.sweeps.spaces import Choice, LogUniform, RandInt, Uniform, Values

_SCALARS = st.one_of(
    st.integers(), st.booleans(), st.none(), st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]))
)
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner))


@pytest.mark.slow
@given(st.lists(_VALUES, min_size=1))
def test_joined_json_values_are_split_again(values: list[Any]) -> None:
    written = [json.dumps(value, ensure_ascii=False) for value in values]
    assert split_values(f"key={','.join(written)}") == written
    assert [parse(part).value for part in split_values(f"key={', '.join(written)}")] == values


@given(st.lists(st.text(), min_size=1))
def test_joined_single_quoted_texts_are_split_again(texts: list[str]) -> None:
    written = ["'" + text.replace("'", "''") + "'" for text in texts]
    assert split_values(f"key={','.join(written)}") == written


@given(st.text())
def test_splitting_loses_only_whitespace(text: str) -> None:
    try:
        values = split_values(f"key={text}")
    except UserError:
        # hypothesis fails the test if too many are refused.
        reject()
    assert "".join(",".join(values).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "text, values",
    [
        ("1", ["1"]),
        ("", [""]),
        ("0.1, 0.2", ["0.1", "0.2"]),
        ("[3,4],[5]", ["[3,4]", "[5]"]),
        ("{kind: none},{kind: mixed, p: [1, 2]}", ["{kind: none}", "{kind: mixed, p: [1, 2]}"]),
        ("${from_file:a,b.yaml},c", ["${from_file:a,b.yaml}", "c"]),
        ("it's,that's", ["it's", "that's"]),
        ("'it''s, so',b", ["'it''s, so'", "b"]),
        (r'"a\",b",c', [r'"a\",b"', "c"]),
        ("a'',b", ["a''", "b"]),
        ("a=b,c", ["a=b", "c"]),
        (",", [","]),
    ],
)
def test_a_value_ends_at_a_comma_outside_brackets_and_quotes(text: str, values: list[str]) -> None:
    assert split_values(f"key={text}") == values


@pytest.mark.parametrize("text", ["a,", ",a", "a,,b"])
def test_an_empty_value_among_several_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="null"):
        split_values(f"key={text}")


@pytest.mark.parametrize(
    "text, space",
    [
        ("1", None),
        ("1,2", Values(("1", "2"))),
        ("uniform(0, 0.5)", Uniform(0, 0.5)),
        (" loguniform( 1e-5,1e-2 ) ", LogUniform(1e-5, 1e-2)),
        ("randint(1,4)", RandInt(1, 4)),
        ("choice([2], [2,3], none)", Choice(("[2]", "[2,3]", "none"))),
        ("'uniform(0,1)'", None),
        ("sin(0,1)", None),
    ],
)
def test_a_range_is_parsed_from_its_name_and_limits(text: str, space: object) -> None:
    assert read_space(f"key={text}") == space


@pytest.mark.parametrize(
    "text, problem",
    [
        ("uniform(1)", "needs two numbers, found 1, as in key=uniform"),
        ("uniform(a,b)", "needs two numbers, found a, b"),
        ("uniform(2,1)", "from the lower to the higher number, found 2 and 1"),
        ("loguniform(0,1)", "needs numbers above 0, found 0"),
        ("randint(1,2.5)", "needs whole numbers, found 1 and 2.5"),
        ("choice(a,,b)", "a value between commas is empty"),
        ("uniform([,2)", "needs two numbers"),
        ("lognuiform(1e-5,1e-2)", "as in key=loguniform("),
        ("loguniform(1e-5, 1e-2", "found loguniform(1e-5, 1e-2, expected a range"),
    ],
)
def test_an_invalid_range_is_refused_with_an_example(text: str, problem: str) -> None:
    with pytest.raises(UserError, match=r"^key: .*as in key=") as refusal:
        read_space(f"key={text}")
    assert problem in str(refusal.value)
