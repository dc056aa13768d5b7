"""The runs that a sweep makes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.config.composition.yaml_files import parse
from toolkit.errors import UserError
from toolkit.sweeps.spaces import (
    Choice,
    LogUniform,
    RandInt,
    Space,
    Uniform,
    Values,
    draw,
    number_in,
    written,
)
from toolkit.sweeps.sweep import Sweep, checked, with_overrides

A, B = Values(("1", "2", "3")), Values(("x", "y", "z"))


def test_a_grid_has_every_combination_with_the_last_key_varying_fastest() -> None:
    points = Sweep(parameters={"a": A, "b": B}).points()
    assert [(point["a"], point["b"]) for point in points] == list(itertools.product("123", "xyz"))


def test_zipped_keys_vary_together_and_others_within_them() -> None:
    sweep = Sweep(parameters={"a": A, "c": Values(("0", "1")), "b": B}, zipped=(("a", "b"),))
    points = [point["a"] + point["b"] + point["c"] for point in checked(sweep).points()]
    assert points == ["1x0", "1x1", "2y0", "2y1", "3z0", "3z1"]
    assert Sweep(method="zip", parameters={"a": A, "b": B}).points()[1] == {"a": "2", "b": "y"}


def test_listed_runs_are_combined_with_parameters_and_seeds() -> None:
    sweep = Sweep(
        runs=({"a": "1", "b": "x"}, {"a": "2"}), seeds=("5", "6"), parameters={"c": Values(("0", "1"))}
    )
    points = sweep.points()
    assert len(points) == 8
    assert points[0] == {"a": "1", "b": "x", "c": "0", "seed": "5"}
    assert points[-1] == {"a": "2", "c": "1", "seed": "6"}


@pytest.mark.parametrize(
    "sweep, problem",
    [
        (Sweep(parameters={"a": A, "b": Values(("x", "y"))}, zipped=(("a", "b"),)), "a has 3, b has 2"),
        (Sweep(parameters={"a": A}, zipped=(("a", "b"),)), "b is zipped, but has no list"),
        (Sweep(parameters={"a": A, "b": B, "c": A}, zipped=(("a", "b"), ("b", "c"))), "b is in two groups"),
        (Sweep(parameters={"a": Uniform(0, 1)}, zipped=(("a",),)), "a is drawn from uniform"),
        (Sweep(method="random", parameters={"a": A}), "samples"),
        (Sweep(method="random", samples=2, parameters={"a": A}, zipped=(("a",),)), "zipped in a grid"),
        (Sweep(samples=3, parameters={"a": A}), "samples are drawn by"),
        (Sweep(method="random", samples=3, fixed={"a": "f(1)"}), "nothing is drawn"),
        (Sweep(method="random", samples=2.5, parameters={"a": A}), "found 2.5"),
        (Sweep(max_parallel=0, parameters={"a": A}), "max_parallel of the sweep: found 0"),
        (Sweep(fixed={"seed": "3"}, seeds=("1", "2")), "seed is 3 for all runs"),
        (Sweep(method="optuna", samples=3, parameters={"b": B}, runs=({"a": "1"},)), "leave out `runs`"),
        (Sweep(method="optuna", samples=3, parameters={"a": A, "seed": A}), "--seeds"),
        (Sweep(method="list"), "needs `runs`"),
        (Sweep(method="list", runs=({"a": "1"},), parameters={"b": B}), "takes no parameters"),
        (Sweep(parameters={"a": Uniform(0, 1)}), "--random N"),
        (Sweep(parameters={"a": Choice(("1",))}), "--random N"),
        (Sweep(parameters={"seed": A}, seeds=("1",)), "seed is varied twice"),
        (Sweep(parameters={"a": A}, runs=({"a": "1"},)), "a is varied twice"),
        (Sweep(parameters=dict.fromkeys("ab", Values(tuple(map(str, range(400)))))), "160,000 runs"),
    ],
)  # fmt: skip
def test_settings_that_contradict_or_cannot_be_enumerated_are_refused(sweep: Sweep, problem: str) -> None:
    with pytest.raises(UserError) as refusal:
        checked(sweep).points()
    assert problem in str(refusal.value)


@pytest.mark.parametrize("sweep, word, part", [
    (Sweep(method="list", runs=({"a": "1"}, {"a": "2"})), "a=3", "a is set for each run by sweep.runs"),
    (Sweep(parameters={"a": A}, seeds=("1", "2")), "seed=7", "seed is set for each run by sweep.seeds"),
])  # fmt: skip
def test_a_value_that_runs_of_the_file_would_hide_is_refused(sweep: Sweep, word: str, part: str) -> None:
    with pytest.raises(UserError, match=part):
        with_overrides(sweep, [word])


def test_value_for_runs_that_do_not_set_its_key_is_taken() -> None:
    sweep = Sweep(method="list", runs=({"a": "1"}, {"b": "2"}))
    assert with_overrides(sweep, ["a=3"]).fixed == {"a": "3"}


def test_more_samples_and_keys_do_not_change_the_first_draws() -> None:
    spaces: dict[str, Space] = {"a": LogUniform(1e-5, 1e-2), "b": RandInt(1, 9)}
    few = Sweep(method="random", parameters=spaces, samples=3, seed=7).points()
    many = Sweep(method="random", parameters={"c": B, **spaces}, samples=30, seed=7).points()
    assert [{key: point[key] for key in "ab"} for point in many[:3]] == few
    assert Sweep(method="random", parameters=spaces, samples=3, seed=8).points() != few


_LIMITS = st.tuples(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6)).filter(lambda pair: pair[0] < pair[1])


@given(_LIMITS, st.integers(0, 10**6), st.sampled_from([Uniform, LogUniform]))
def test_a_draw_lies_within_its_limits(limits: tuple[float, float], number: int, kind: type) -> None:
    drawn = number_in(draw(kind(*limits), 0, number, "key"))
    assert limits[0] <= drawn <= limits[1]


def test_whole_numbers_and_choices_are_drawn_uniformly() -> None:
    for space in (RandInt(-1, 2), Values(tuple("abcd"))):
        drawn = [draw(space, 0, number, "key") for number in range(4000)]
        counts = [drawn.count(value) for value in set(drawn)]
        assert len(counts) == 4
        assert all(850 < count < 1150 for count in counts)


def test_the_logarithm_of_a_loguniform_draw_is_uniform() -> None:
    drawn = [number_in(draw(LogUniform(1e-4, 1.0), 0, number, "key")) or 0 for number in range(4000)]
    assert 1850 < sum(number < 1e-2 for number in drawn) < 2150


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Z"])),
    lambda inner: st.lists(inner, max_size=3),
))  # fmt: skip
def test_a_written_value_is_read_back(value: object) -> None:
    assert parse(written(value)).value == value


def test_overrides_change_the_parameters_of_a_sweep() -> None:
    sweep = Sweep(parameters={"a": A, "b": B}, fixed={"c": "0"})
    changed = with_overrides(sweep, ["a=9", "c=1,2", "d=uniform(0,1)"])
    assert changed.parameters == {"b": B, "c": Values(("1", "2")), "d": Uniform(0, 1)}
    assert changed.fixed == {"a": "9"}


def test_a_section_is_overridden_before_its_keys() -> None:
    sweep = with_overrides(Sweep(), ["model.dim=1,2", "model={kind: x}"])
    assert sweep.overrides({"model.dim": "1"}) == ["model={kind: x}", "model.dim=1"]


@pytest.mark.parametrize("overrides", [["seed=1", "seed=2"], ["seed"], ["=1"]])
def test_a_duplicate_or_missing_key_is_refused(overrides: list[str]) -> None:
    with pytest.raises(UserError):
        with_overrides(Sweep(), overrides)
