"""Whether a goal is reached, from rows."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.figures.goals import GOALS
from benchmarks.figures.tables import Row, Table
from benchmarks.figures.verdict import NOT_MEASURED, Check, Goal, cells

#: By work and candidate, a value for each round.
VALUES = {
    ("one", "base"): (1.0, 2.0, 3.0),
    ("one", "peer"): (2.0, 1.0, 6.0),
    ("one", "ours"): (2.0, 3.0, 4.5),
    ("two", "base"): (10.0, 10.0, 10.0),
    ("two", "ours"): (15.0, 16.0, 17.0),
}


def test_cell_shows_the_smallest_and_the_largest_median() -> None:
    assert judge(check(at_most=16.0)) == ("3.00 to 16.00 ms", "yes")
    assert judge(check(at_most=15.9)) == ("3.00 to 16.00 ms", "in 1 of 2")
    assert judge(check(at_least=16.1)) == ("3.00 to 16.00 ms", "no")


def test_ratio_and_difference_are_of_the_same_round() -> None:
    assert judge(check(take="ratio", at_most=1.6, says="{} times")) == ("1.50 to 1.60 times", "yes")
    assert judge(check(take="difference", at_most=1.0))[0] == "+1.00 to +6.00 ms"


@pytest.mark.parametrize("better, ratio", [("less", "2.00"), ("more", "1.00")])
def test_ratio_is_against_the_best_other_candidate_of_each_round(better: str, ratio: str) -> None:
    several = check(take="ratio", against=("base", "peer"), works=("one",), at_most=1.0, says="{}")
    assert judge(several, better=better)[0] == ratio


def test_medians_are_compared_if_a_candidate_has_fewer_rounds() -> None:
    values = {("one", "base"): (2.0,), ("one", "ours"): (2.0, 3.0, 4.5)}
    assert judge(check(take="ratio", at_most=2.0, says="{}"), values)[0] == "1.50"


def test_missing_measurement_does_not_count_as_a_reached_goal() -> None:
    absent = check(table="another", at_most=1.0)
    assert judge(absent) == (NOT_MEASURED, "")
    goal = Goal(figure="f", goal="g", checks=(check(at_most=16.0), absent))
    assert cells(goal, {"T": table(VALUES)}) == ("3.00 to 16.00 ms", f"yes, part {NOT_MEASURED}")
    failed = Table(title="T", goal="", unit="ms", better="less", baseline="base")
    failed.rows.append(Row(work="one", candidate="ours", missing="failed: no"))
    assert cells(Goal(figure="", goal="", checks=(check(at_most=1),)), {"T": failed})[1] == ""


def test_each_check_of_a_goal_has_one_bound_and_one_placeholder() -> None:
    assert GOALS
    checks = [each for goal in GOALS for each in goal.checks]
    assert all((each.at_most is None) != (each.at_least is None) for each in checks)
    assert all(each.says.count("{}") == 1 for each in checks)


def check(**changes: Any) -> Check:
    return Check(**{"table": "T", "candidate": "ours", "says": "{} ms", **changes})


def table(values: dict[tuple[str, str], tuple[float, ...]], better: str = "less") -> Table:
    made = Table(title="T", goal="g", unit="ms", better=better, baseline="base")
    made.rows.extend(Row(work=work, candidate=name, values=rounds) for (work, name), rounds in values.items())
    return made


def judge(one: Check, values: Any = VALUES, better: str = "less") -> tuple[str, str]:
    goal = Goal(figure="f", goal="g", checks=(one,))
    return cells(goal, {"T": table(values, better)})
