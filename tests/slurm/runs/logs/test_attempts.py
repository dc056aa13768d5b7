"""Which start wrote which log."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from filelock import FileLock

from slurm.runs.logs.attempts import logged_attempts
from slurm.runs.logs.listing import entries, table
from tests.slurm.runs.logs.folder import Logged
from toolkit.files import append_json_line


@pytest.fixture
def logged(tmp_path: Path) -> Logged:
    return Logged(tmp_path)


def test_attempt_without_a_nonce_is_found_by_job_and_restart(logged: Logged) -> None:
    """The batch script adds such a line."""
    logged.write("101.0.0", "no module named x")
    logged.write("101.0.1", "later", time=2000.0)
    logged.start("", job_id="101", restart=0)
    first, second = logged_attempts(logged.run)
    assert (first.number, first.logs[0].read_text()) == (1, "no module named x")
    assert second.nonce == "101.0.1"


def test_attempt_that_died_early_is_not_confused_with_an_earlier_one(logged: Logged) -> None:
    logged.start("101.0.0", "killed", job_id="101", restart=0)
    logged.write("101.1.0", "no module named x")
    logged.start("", job_id="101", restart=0)
    found = [start.logs[0].read_text() for start in logged_attempts(logged.run)]
    assert found == ["killed", "no module named x"]


def test_starting_attempt_has_the_next_number(logged: Logged) -> None:
    logged.start("101.0.0", "first")
    logged.write("101.0.1", "importing torch", time=2000.0)
    assert [start.number for start in logged_attempts(logged.run)] == [1, 2]


def test_attempt_that_was_never_recorded_has_no_number(logged: Logged) -> None:
    logged.write("local-a", "stopped at once", time=5.0)
    logged.start("local-b", "first")
    found = [(start.number, start.nonce) for start in logged_attempts(logged.run)]
    assert found == [(None, "local-a"), (1, "local-b")]


def test_first_attempt_is_listed_before_it_is_recorded(logged: Logged) -> None:
    logged.write("101.0.0", "importing torch")
    (start,) = logged_attempts(logged.run)
    assert (start.number, start.job_id) == (1, None)


@pytest.mark.parametrize("is_live, ends", [(True, [True, True, False]), (False, [True, True, True])])
def test_only_the_newest_attempt_of_a_live_run_may_be_starting(
    logged: Logged, is_live: bool, ends: list[bool]
) -> None:
    logged.start("101.0.0", "first", why="preempted")
    logged.write("101.0.1", "stopped before it began", time=2000.0)
    logged.write("101.0.2", "importing torch", time=3000.0)
    with FileLock(logged.run.alive) if is_live else nullcontext():
        rows = table(logged.run)[1:]
    assert [not row.endswith("–") for row in rows] == ends


def test_damaged_attempts_file_hides_no_log(logged: Logged) -> None:
    logged.run.attempts.write_text('{"attempt": 1, "time_start": "noon"}\n[]\n{"attempt":')
    logged.write("101.0.0", "still here")
    assert [list(start.logs) for start in logged_attempts(logged.run)] == [[], [0]]


@pytest.mark.parametrize(
    "line",
    [
        {"job_id": 101, "hosts": 3, "time_start": 1e300, "why": ["x"]},
        {"job_id": {}, "hosts": [None, 4], "time_start": None, "restart": "x"},
        {"nonce": 7, "time_start": float("nan")},
    ],
)
def test_attempt_with_invalid_values_is_still_listed(logged: Logged, line: dict[str, object]) -> None:
    append_json_line(logged.run.attempts, {"attempt": 1, **line})
    logged.write("101.0.0", "text")
    logged.run.ranks("101.0.0").parent.mkdir()
    logged.run.ranks("101.0.0").write_text('7\n[]\n{"rank": "x"}\n{"rank": 0}\n')
    assert len(table(logged.run)) >= 2
    assert [entry["rank"] for entry in entries(logged.run)] == [0]
