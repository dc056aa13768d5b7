"""`key=a,b`: where a value ends, and what is composed of the values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.sweeps.combinations import combine, split_values
from tests.slurm.house import House
from toolkit.config import run_id
from toolkit.config.yaml_files import parse
from toolkit.errors import ConfigError, UserError

_SCALARS = st.one_of(
    st.integers(), st.booleans(), st.none(), st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]))
)
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner))


@given(st.lists(_VALUES, min_size=1))
def test_any_values_written_one_after_the_other_are_found_again(values: list[Any]) -> None:
    written = [json.dumps(value, ensure_ascii=False) for value in values]
    assert split_values(f"key={','.join(written)}") == written
    assert [parse(part).value for part in split_values(f"key={', '.join(written)}")] == values


@given(st.lists(st.text(), min_size=1))
def test_texts_in_single_quotes_are_found_again(texts: list[str]) -> None:
    written = ["'" + text.replace("'", "''") + "'" for text in texts]
    assert split_values(f"key={','.join(written)}") == written


@given(st.text())
def test_nothing_between_two_values_is_lost(text: str) -> None:
    try:
        values = split_values(f"key={text}")
    except UserError:
        return
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
    ],
)
def test_a_value_ends_at_a_comma_outside_brackets_and_quotes(text: str, values: list[str]) -> None:
    assert split_values(f"key={text}") == values


@pytest.mark.parametrize("text", ["a,", ",a", "a,,b"])
def test_an_empty_value_among_several_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="null stands for nothing"):
        split_values(f"key={text}")


def test_every_combination_is_the_experiment_that_a_single_submission_would_have(house: House) -> None:
    found = combine(house.config, ["seed=1,2", "model.kernels=[2],[2,3]", "train.epochs=3"])
    assert [each.values for each in found] == [
        {"seed": "1", "model.kernels": "[2]"},
        {"seed": "1", "model.kernels": "[2,3]"},
        {"seed": "2", "model.kernels": "[2]"},
        {"seed": "2", "model.kernels": "[2,3]"},
    ]
    for each in found:
        overrides = [*(f"{key}={value}" for key, value in each.values.items()), "train.epochs=3"]
        assert each.run_id == run_id(house.experiment(*overrides))


def test_without_a_list_there_is_one_combination(house: House) -> None:
    (only,) = combine(house.config, ["seed=3"])
    assert (only.values, only.experiment.seed) == ({}, 3)


def test_all_faults_are_told_with_the_combination_that_has_them(house: House) -> None:
    with pytest.raises(ConfigError) as caught:
        combine(house.config, ["seed=1,x", "train.epochs=1,-2", "train.lr_=3"])
    told = {fault.key: fault for fault in caught.value.faults}
    assert told["seed"].hint.endswith("in the run with seed=x train.epochs=1 and 1 more")
    assert told["train.epochs"].hint.endswith("in the run with seed=1 train.epochs=-2 and 1 more")
    assert "in the run" not in told["train.lr_"].hint


def test_resources_that_differ_are_refused_with_both_values(house: House) -> None:
    with pytest.raises(UserError, match=r"resources\.time is '10' with .*=10 and '20' with .*=20"):
        combine(house.config, ["resources.time=10,20"])


def test_a_key_that_is_given_twice_is_refused(house: House) -> None:
    with pytest.raises(UserError, match="seed is given twice"):
        combine(house.config, ["seed=1", "seed=2"])


def test_more_combinations_than_any_array_holds_are_refused_before_one_is_composed(tmp_path: Path) -> None:
    numbers = ",".join(map(str, range(400)))
    with pytest.raises(UserError, match="160,000 combinations"):
        combine(tmp_path / "none.yaml", [f"a={numbers}", f"b={numbers}"])
