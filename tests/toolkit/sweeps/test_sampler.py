"""What Optuna's sampler proposes, given the runs so far."""

from __future__ import annotations

import math
import sys

import pytest

from toolkit.errors import UserError
from toolkit.sweeps.results.collect import Result, Results
from toolkit.sweeps.sampler import propose
from toolkit.sweeps.spaces import LogUniform, RandInt, Space, Uniform, Values, number_in
from toolkit.sweeps.sweep import Point, Sweep

SPACES: dict[str, Space] = {
    "lr": LogUniform(1e-6, 1.0),
    "n": RandInt(1, 3),
    "p": Uniform(0, 1),
    "k": Values(("[2]", "[2, 3]")),
}
SWEEP = Sweep(method="optuna", samples=10, parameters=SPACES)


def came_to(points: list[Point], goal: str = "max") -> Results:
    """Results of runs: the nearer the learning rate is to 0.001, the better; every fifth is at work."""
    sign = 1 if goal == "max" else -1
    rows = [
        Result(run_id=str(number), values=point, state="finished", value=sign * -_distance(point))
        if number % 5
        else Result(run_id=str(number), values=point, state="running")
        for number, point in enumerate(points)
    ]
    rows.sort(key=lambda row: (row.value is None, -sign * (row.value or 0)))
    return Results(
        name="x", config="", metric="validation.accuracy", goal=goal, keys=tuple(SPACES), spaces={}, log=(),
        rows=tuple(rows), groups=(),
    )  # fmt: skip


def _distance(point: Point) -> float:
    return abs(math.log10(number_in(point["lr"]) or 1) + 3)


@pytest.mark.parametrize("goal", ["max", "min"])
def test_proposals_approach_the_best_values(goal: str) -> None:
    points: list[Point] = []
    batches = []
    for _ in range(5):
        batches.append(propose(SWEEP, came_to(points, goal) if points else None))
        points += batches[-1]
    first, last = (sorted(map(_distance, batch))[5] for batch in (batches[0], batches[-1]))
    assert last < first
    assert len({point["lr"] for point in points}) == 50


def test_proposals_are_deterministic_and_within_the_spaces() -> None:
    known = came_to(propose(SWEEP, None))
    proposed = propose(SWEEP, known)
    assert proposed == propose(SWEEP, known)
    for point in proposed:
        assert point["k"] in ("[2]", "[2, 3]")
        assert point["n"] in "123"
        assert 0 <= (number_in(point["p"]) or 0) <= 1


def test_runs_outside_the_changed_spaces_are_ignored() -> None:
    known = came_to(
        [{"lr": "5", "n": "1", "p": "0.5", "k": "[2]"}, {"lr": "0.1", "n": "1", "p": "0.5", "k": "[9]"}]
    )
    assert len(propose(SWEEP, known)) == 10


def test_missing_optuna_is_reported_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UserError, match=r"pip install 'slurm-toolkit\[optuna\]'"):
        propose(SWEEP, None)


def test_an_unknown_sampler_is_refused() -> None:
    with pytest.raises(UserError, match="unknown sampler 'ga'"):
        propose(Sweep(method="optuna", samples=1, sampler="ga", parameters=SPACES), None)


def test_rounding_keeps_a_proposal_within_its_range() -> None:
    sweep = Sweep(method="optuna", samples=20, parameters={"p": Uniform(0.99998, 0.99999)})
    drawn = [number_in(point["p"]) or 0 for point in propose(sweep, None)]
    assert all(0.99998 <= number <= 0.99999 for number in drawn)
