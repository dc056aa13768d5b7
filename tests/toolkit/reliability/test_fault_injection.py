"""The syntax of STK_FAULTS, and when faults strike."""

from __future__ import annotations

import errno
import signal
import time
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.support.ranks import run_ranks
from toolkit.errors import UserError
from toolkit.reliability.fault_injection import POINTS, VARIABLE, Fault, Faults, InjectedFault, parse
from toolkit.system.world import World

NUMBERS = st.none() | st.integers(0, 10**6)


@st.composite
def faults(draw: st.DrawFn) -> Fault:
    action = draw(st.sampled_from(["kill", "term", "stop", "hang", "raise", "exit", "enospc", "slow", "nan"]))
    amounts = {"exit": st.integers(0, 255), "slow": st.sampled_from([0.0, 0.25, 3.0])}
    first, length = draw(st.integers(0, 10**6)), draw(st.integers(1, 50))
    return Fault(
        action=action,
        at=draw(st.sampled_from(POINTS)),
        steps=draw(st.none() | st.just(range(first, first + length))),
        rank=draw(NUMBERS),
        attempt=draw(NUMBERS),
        amount=draw(amounts.get(action, st.just(0.0))),
    )


@given(st.lists(faults(), max_size=4))
def test_formatted_faults_are_parsed_back_equal(written: list[Fault]) -> None:
    assert parse("; ".join(map(str, written))) == written


def test_words_may_be_in_any_order_with_any_whitespace() -> None:
    assert parse(" kill  rank=1 step=5 at=forward ;;\n slow 0.5 at=save:write; ") == [
        Fault(action="kill", at="forward", steps=range(5, 6), rank=1),
        Fault(action="slow", at="save:write", amount=0.5),
    ]


@pytest.mark.parametrize(
    "spec, words",
    [
        ("explode at=forward", "'explode' is not an action; allowed are kill, term"),
        ("kill", "at= is missing; allowed are data, forward"),
        ("kill at=foward", "at is 'foward'; allowed are data, forward"),
        ("kill at=data when=5", "'when=5' is unknown; allowed are at=, step=, rank=, attempt="),
        ("kill at=data 5", "'5' is unknown"),
        ("kill at=data step=five", "step is 'five', expected a whole number"),
        ("kill at=data step=", "step is '', expected a whole number"),
        ("kill at=data step=-1", "step is '', expected a whole number"),
        ("kill at=data step=9-5", "step is '9-5', which runs backwards"),
        ("kill at=data rank=²", "rank is '²', expected a whole number"),
        ("kill at=data at=save", "a word is given twice"),
        ("exit at=data", "exit takes a whole number"),
        ("slow soon at=data", "slow takes seconds"),
        ("slow nan at=data", "slow takes seconds"),
    ],
)
def test_an_invalid_fault_is_refused_with_the_allowed_words(spec: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(f"hang at=data; {spec}")
    assert f"{VARIABLE}: in the fault {spec!r}, " in str(caught.value)
    assert words in str(caught.value)


def test_faults_of_other_ranks_and_attempts_are_ignored() -> None:
    assert Faults.from_environment(0, 1, {}) is None
    assert Faults.from_environment(0, 1, {VARIABLE: ""}) is None
    spec = {VARIABLE: "raise at=data rank=1; raise at=data attempt=2"}
    assert Faults.from_environment(0, 1, spec) is None
    assert Faults.from_environment(1, 1, spec) is not None
    assert Faults.from_environment(0, 2, spec) is not None


def test_faults_raise_the_error_that_they_imitate() -> None:
    with pytest.raises(OSError) as caught:  # noqa: PT011 its number is what counts
        Faults(parse("enospc at=save:write")).at("save:write", 3)
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(InjectedFault, match="raise at=data step=3 rank=1"):
        Faults(parse("raise at=data step=3 rank=1")).at("data", 3)


@dataclass(frozen=True)
class Total:
    total: float


def test_a_nan_fault_replaces_one_loss_by_nan() -> None:
    faults = Faults(parse("nan at=forward step=3"))
    faults.at("forward", 2)
    assert faults.inject_nan(Total(1.5)) == Total(1.5)
    faults.at("forward", 3)
    spoilt = faults.inject_nan(Total(1.5)).total
    assert spoilt != spoilt
    assert faults.inject_nan(Total(1.5)) == Total(1.5)


def strike(world: World, spec: str) -> str:
    caught: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: caught.append(number))
    Faults(parse(spec)).at("data", 0)
    return "told to stop" if caught else ""


@pytest.mark.parametrize(
    "spec, value, status", [("exit 7 at=data", None, 7), ("term at=data", "told to stop", 0)]
)
def test_faults_end_or_signal_the_process(spec: str, value: str | None, status: int) -> None:
    (ended,) = run_ranks(1, strike, spec)
    assert (ended.value, ended.exit_status) == (value, status)


def test_a_slow_fault_sleeps_for_its_seconds() -> None:
    started = time.monotonic()
    Faults(parse("slow 0.05 at=data")).at("data", 0)
    assert time.monotonic() - started >= 0.05


@pytest.mark.parametrize(
    "spec, struck",
    [
        ("slow 0 at=data", [0, 1, 2, 3]),
        ("slow 0 at=data step=1-2", [1, 2]),
        ("slow 0 at=data step=2", [2]),
        ("enospc at=data", [0]),
        ("enospc at=data step=1-2", [1, 2]),
        ("raise at=data step=2", [2]),
    ],
)
def test_a_recorded_fault_strikes_once_in_a_step_of_several_micro_batches(
    spec: str, struck: list[int]
) -> None:
    noted: list[tuple[str, int, str]] = []
    faults = Faults(parse(spec), lambda event, fault, step: noted.append((event, step, fault)))
    for step in range(4):
        for point in ("forward", "data", "data", "data"):
            with suppress(OSError, InjectedFault):
                faults.at(point, step)
    assert noted == [("fault", step, spec) for step in struck]
