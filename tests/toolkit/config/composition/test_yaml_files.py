"""YAML is read as YAML 1.2, with lines, and a text written comes back as the same text."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.config.composition.yaml_files import Unreadable, dump, parse, read_text

TEXTS = [
    "1:00:00", "1-12:00", "12:30:45.6", "no", "yes", "on", "off", "No", "y", "n", "2024-01-01",
    "2024-01-01 12:00:00", "007", "0x10", "0o17", "0b1", "+5", "1_000", "1e", "e3", ".", "1.2.3",
    "infinity", "nan", "tRUE", "nuLL", "=", "${a}", "1" * 200,
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_yaml_1_1_traps_stay_text(text):
    assert parse(f"key: {text}").value == {"key": text}


@pytest.mark.parametrize(
    "text, value",
    [
        ("true", True), ("False", False), ("TRUE", True), ("null", None), ("~", None), ("", None),
        ("Null", None), ("0", 0), ("-3", -3), ("12", 12), ("1e-3", 0.001), ("1E5", 1e5), ("1.5", 1.5),
        ("-.5", -0.5), ("1.", 1.0), ("+1.5e+3", 1500.0), (".inf", math.inf), ("-.INF", -math.inf),
        ("'1'", "1"), ('"true"', "true"), ("!!str 1", "1"), ("!!int 7", 7), ("!!float 1.5", 1.5),
        ("[]", []), ("{}", {}),
    ],
)  # fmt: skip
def test_yaml_1_2_scalars_get_their_type(text, value):
    found = parse(f"key: {text}").value["key"]
    assert found == value
    assert type(found) is type(value)


def test_nan_is_read_as_nan():
    assert math.isnan(parse("key: .NaN").value["key"])


def test_keys_are_always_text():
    assert parse("{1: a, no: b, null: c, true: d, 1.5: e}").value == {
        "1": "a", "no": "b", "null": "c", "true": "d", "1.5": "e",
    }  # fmt: skip


def test_a_key_given_twice_names_both_lines():
    document = parse("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n")
    assert document.value == {"a": 1, "b": {"c": 1, "d": 2}}
    ((key, line, problem, _),) = document.faults
    assert (key, line) == (("b", "c"), 5)
    assert "lines 3 and 5" in problem


@pytest.mark.parametrize(
    "text",
    ["a: !!python/name:os.system x", "a: !thing {b: 1}", "a: !!set {b}", "a: !!int x", "a: !!binary aGk="],
)
def test_unsupported_tags_are_faults(text):
    ((key, line, problem, _),) = parse(text).faults
    assert (key, line) == (("a",), 1)
    assert "tag" in problem


def test_a_list_as_a_key_is_a_fault():
    ((key, _, problem, _),) = parse("a:\n  ? [1, 2]\n  : 3\n").faults
    assert key == ("a",)
    assert "list or mapping" in problem


def test_an_alias_is_an_independent_copy():
    value = parse("a: &x {b: [1]}\nc: *x\n").value
    value["a"]["b"].append(2)
    assert value["c"] == {"b": [1]}


def test_explicit_keys_override_merged_keys():
    text = "one: &one {a: 1, b: 1}\ntwo: &two {b: 2, c: 2}\nx:\n  <<: [*one, *two]\n  a: 3\ny:\n  <<: *two\n"
    document = parse(text)
    assert document.faults == []
    assert document.value["x"] == {"a": 3, "b": 1, "c": 2}
    assert document.value["y"] == {"b": 2, "c": 2}


_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**60), 10**60)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from(
        [*TEXTS, "true", "~", "1e3", "1.0", "<<", "&a", "*a", "!x", "a: b", "- a", "# a", "'", '"']
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(_PLAIN)
def test_dumped_values_are_parsed_back_equal(value):
    document = parse(dump(value))
    assert document.value == value
    assert repr(document.value) == repr(value)
    assert document.faults == []


def test_a_python_file_in_place_of_an_experiment_gets_a_hint(tmp_path: Path) -> None:
    (tmp_path / "digits.py").write_text("def model(): ...\n")
    with pytest.raises(Unreadable) as raised:
        read_text(tmp_path / "digits.py")
    assert "task: digits.py" in (raised.value.hint or "")
