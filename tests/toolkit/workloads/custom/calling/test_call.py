"""A function called in a job: its result, and the rank that writes it."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit.files import read_json
from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.calling.call import main

WORK = """
import sys


def leaves(status):
    sys.exit(status)


def odd():
    return [float("inf"), float("-inf"), "\\ud800 \u00fc"]


def words():
    return sys.argv[1:]
"""

Call = Callable[..., int]


@pytest.fixture
def call(run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls a function as the job of the run does, in this process."""
    (tmp_path / "called_here.py").write_text(WORK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", ["call.py", "a word"])
    environ = {"STK_RUN_DIR": run.path, "STK_ATTEMPT": 1, "STK_STOP_FILE": tmp_path / "stop", "RANK": 0}
    for name, value in environ.items():
        monkeypatch.setenv(name, str(value))

    def call(function: str, *args: object) -> int:
        request = {"function": f"called_here:{function}", "args": args, "kwargs": {}, "path": "."}
        return main([json.dumps(request)])

    return call


@pytest.mark.parametrize("status", [0, None])
def test_successful_exit_is_recorded_as_the_result_none(call: Call, run: RunDir, status: int | None) -> None:
    assert call("leaves", status) == 0
    assert read_json(run.returned) == {"value": None}


@pytest.mark.parametrize("status", [75, 3, "a message"])
def test_nonzero_exit_writes_no_result(call: Call, run: RunDir, status: object) -> None:
    with pytest.raises(SystemExit) as left:
        call("leaves", status)
    assert left.value.code == status
    assert not run.returned.exists()


def test_result_keeps_infinite_numbers_and_unpaired_surrogates(call: Call, run: RunDir) -> None:
    """A loss that has diverged must not cost the result of hours."""
    assert call("odd") == 0
    assert read_json(run.returned) == {"value": [math.inf, -math.inf, "\ud800 \u00fc"]}


def test_rank_1_writes_no_result(call: Call, run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    assert call("leaves", 0) == 0
    assert not run.returned.exists()


def test_function_does_not_see_command_line_arguments_of_the_job(call: Call, run: RunDir) -> None:
    assert call("words") == 0
    assert read_json(run.returned) == {"value": []}
