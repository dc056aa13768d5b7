"""Where a run's time went, seen from outside: every second once, for every tool."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module; peers/ is a folder of scripts, whose names must not stay."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(PEERS))
    yield importlib.import_module("accounts")
    for name in set(sys.modules) - before:
        if str(PEERS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def account(peers: ModuleType, steps: list[tuple[int, float, str]], **traces: Any) -> dict[str, float]:
    """Seconds by part where there are any; they add up to the wall time."""
    done = [peers.Step(step=step, time=time, start=start) for step, time, start in steps]
    given = {"launches": [0.0], "gone": [], "by_hand": [], "step_s": 1.0, **traces}
    found = peers.account(peers.Traces(steps=done, **given))
    assert found.unaccounted == pytest.approx(0.0)
    assert sum(found.seconds.values()) == pytest.approx(found.wall)
    return {name: seconds for name, seconds in found.seconds.items() if seconds}


def test_time_of_an_undisturbed_run_is_starting_steps_saves_and_rest(peers: ModuleType) -> None:
    start = peers.Start(name="a", began=2.0, saves=((6.5, 7.0),))
    found = account(peers, [(1, 6.0, "a"), (2, 8.0, "a")], starts=[start], until=8.0)
    assert found == {"starting": 5.0, "useful steps": 2.0, "saves": 0.5, "rest": 0.5}


def test_repeated_steps_count_once_and_a_restart_in_place_has_no_slurm_wait(peers: ModuleType) -> None:
    starts = [peers.Start(name="a", began=0.0), peers.Start(name="b", began=5.0)]
    steps = [(1, 2.0, "a"), (2, 3.0, "a"), (2, 8.0, "b"), (3, 9.0, "b")]
    found = account(peers, steps, starts=starts, until=9.0)
    # From the last step at 3 to the new process at 5 the first attempt was ending.
    assert found == {"starting": 3.0, "useful steps": 3.0, "steps done twice": 1.0, "ending": 2.0}


def test_wait_of_a_requeued_job_counts_as_slurm(peers: ModuleType) -> None:
    starts = [peers.Start(name="a", began=0.0), peers.Start(name="b", began=11.0)]
    steps = [(1, 1.0, "a"), (2, 13.0, "b")]
    found = account(peers, steps, starts=starts, until=13.0, launches=[0.0, 10.0], gone=[3.0])
    assert found == {"useful steps": 2.0, "ending": 2.0, "Slurm": 7.0, "starting": 2.0}


def test_wait_for_a_manual_restart_counts_as_a_person(peers: ModuleType) -> None:
    """Even where the job starts before the command that submits it has returned."""
    starts = [peers.Start(name="a", began=0.0), peers.Start(name="b", began=11.0)]
    steps = [(1, 1.0, "a"), (2, 13.0, "b")]
    traces: dict[str, Any] = {"starts": starts, "until": 13.0, "launches": [0.0, 10.0], "gone": [3.0]}
    assert account(peers, steps, **traces, by_hand=[(6.0, 8.0)])["a person"] == 5.0
    assert account(peers, steps, **traces, by_hand=[(6.0, 12.0)])["a person"] == 7.0


def test_attempt_without_a_step_counts_as_starting(peers: ModuleType) -> None:
    starts = [peers.Start(name="a", began=1.0), peers.Start(name="b", began=9.0)]
    found = account(peers, [(1, 12.0, "b")], starts=starts, until=12.0, launches=[0.0, 8.0], gone=[6.0])
    assert found == {"starting": 9.0, "Slurm": 2.0, "useful steps": 1.0}


def test_time_after_the_last_attempt_counts_as_slurm(peers: ModuleType) -> None:
    found = account(peers, [(1, 1.0, "a")], starts=[peers.Start(name="a", began=0.0)], until=9.0, gone=[3.0])
    assert found == {"useful steps": 1.0, "ending": 2.0, "Slurm": 6.0}
