"""How a run of the suite tells what has failed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite.failures import Failure, read_failures, render
from tests.support.registering import ROOT

_CONFTEST = """
from pathlib import Path
from tests.suite.failures import write_failures

def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    reports = [*stats.get("error", ()), *stats.get("failed", ())]
    write_failures(Path("failures.jsonl"), reports, "./scripts/test")
"""
_TESTS = """
import pytest

def check(value):
    assert value == 2, "it is not two"

def test_that_holds():
    check(2)

@pytest.mark.parametrize("value", ["a b"])
def test_that_fails(value):
    check(value)

@pytest.fixture
def broken():
    raise OSError("no such place")

def test_without_its_fixture(broken):
    pass
"""


@pytest.fixture
def failures(tmp_path: Path) -> list[Failure]:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "test_it.py").write_text(_TESTS)
    (tmp_path / "test_unreadable.py").write_text("import nothing_of_this_name\n")
    words = ("--rootdir=.", "-c=/dev/null", "-p", "no:cacheprovider", "--continue-on-collection-errors")
    command = [sys.executable, "-m", "pytest", *words]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return read_failures(tmp_path / "failures.jsonl")


def test_each_failure_has_its_place_its_message_and_the_command_that_repeats_it(
    failures: list[Failure],
) -> None:
    found = {failure.repeat.removeprefix("./scripts/test "): failure for failure in failures}
    assert set(found) == {
        "test_unreadable.py",
        "test_it.py::test_without_its_fixture",
        "'test_it.py::test_that_fails[a b]'",
    }
    failed = found["'test_it.py::test_that_fails[a b]'"]
    assert (failed.place, "it is not two" in failed.message) == ("test_it.py:5", True)
    assert found["test_it.py::test_without_its_fixture"].message == "OSError: no such place"
    assert "nothing_of_this_name" in found["test_unreadable.py"].message


def test_many_failures_fit_on_a_screen_and_each_can_be_repeated() -> None:
    many = [
        Failure(place=f"a.py:{number}", message="x\ny" * 100, repeat=f"again {number}")
        for number in range(20)
    ]
    lines = render(many).splitlines()
    assert len(lines) < 40
    assert max(map(len, lines)) <= 110
    assert all(any(f"again {number}" in line for line in lines) for number in range(20))


def test_nothing_is_shown_without_failures(tmp_path: Path) -> None:
    assert read_failures(tmp_path / "missing") == []
    assert render([]) == ""
