"""Signals that come while a script ends: Python has removed its handlers, and frees the script's objects."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toolkit.workloads.custom.command_runs import Stk, script, the_run
from toolkit.run.attempts.records import read_attempts
from toolkit.workloads.custom.command.worker import SAVED

#: Python frees `last` after it has removed its handlers. The command is asked to leave just then.
ASKED_AT_ITS_END = """
import os, pathlib, signal, time
import stk
run = stk.current_run()
run.log(step=3, total=3, loss=1)
class Last:
    def __del__(self, kill=os.kill, sleep=time.sleep, term=signal.SIGTERM, own=os.getpid(),
                watcher=int(os.environ["STK_WATCHER"]), stop=pathlib.Path(os.environ["STK_STOP_FILE"])):
        kill(watcher, term)
        while not stop.exists():
            sleep(0.01)
        kill(own, term)
last = Last()
"""

#: The command sends itself one signal. `stk` gets none.
SIGNALLED = """
import atexit, os, signal, sys
import stk
number = int(sys.argv[1])
class Last:
    def __del__(self, kill=os.kill, getpid=os.getpid, number=number):
        kill(getpid(), number)
last = Last()
"""

FORKED = """
if child := os.fork():
    status = os.waitpid(child, 0)[1]
    os._exit(0 if os.WTERMSIG(status) == number else 1)
"""

#: Called before handlers are removed: here a request still counts.
AT_EXIT = """
def ask():
    os.kill(os.getpid(), number)
    os._exit(9 if run.should_stop() else 0)
atexit.register(ask)
"""


def status(folder: Path, code: str, number: int, **environ: str) -> int:
    command = [sys.executable, "-c", SIGNALLED + code, str(int(number))]
    done = subprocess.run(command, cwd=folder, env=os.environ | environ, capture_output=True, check=False)
    return done.returncode


def status_in_a_run(folder: Path, code: str, number: int) -> int:
    """Exit status of a script of a run that gets this signal at its end."""
    code = f"run = stk.current_run()\n{code}"
    return status(folder, code, number, STK_RUN_DIR=str(folder), STK_STOP_FILE=str(folder / "stop"))


def test_run_of_a_script_that_is_asked_to_leave_at_its_end_is_finished(stk: Stk) -> None:
    script(ASKED_AT_ITS_END)
    done = stk("run", "--", sys.executable, "train.py")
    assert done.returncode == 0, done.stderr
    assert [each.why for each in read_attempts(the_run())] == ["finished"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
@pytest.mark.parametrize(
    "end, expected", [("", 0), ("run.leave()", SAVED), ("raise ValueError", 1), ("sys.exit(3)", 3)]
)
def test_script_in_a_run_keeps_its_status_if_a_request_comes_at_its_end(
    end: str, expected: int, number: int, tmp_path: Path
) -> None:
    assert status_in_a_run(tmp_path, end, number) == expected


def test_exit_functions_of_a_script_can_still_be_asked_to_leave(tmp_path: Path) -> None:
    assert status_in_a_run(tmp_path, AT_EXIT, signal.SIGTERM) == 9


def test_interrupt_still_ends_a_script_at_its_end(tmp_path: Path) -> None:
    assert status_in_a_run(tmp_path, "", signal.SIGINT) == -signal.SIGINT


def test_process_that_a_script_has_forked_is_still_ended_by_a_request(tmp_path: Path) -> None:
    assert status_in_a_run(tmp_path, FORKED, signal.SIGTERM) == 0


def test_request_that_another_handler_has_taken_over_still_ends_the_script(tmp_path: Path) -> None:
    own = "signal.signal(signal.SIGTERM, lambda *_: None)"
    assert status_in_a_run(tmp_path, own, signal.SIGTERM) == -signal.SIGTERM


def test_script_without_stk_is_still_ended_by_a_request(tmp_path: Path) -> None:
    runs = {"STK_EXPERIMENT_DIR": str(tmp_path)}
    alone = "stk.current_run().should_stop()"
    assert status(tmp_path, alone, signal.SIGTERM, **runs) == -signal.SIGTERM


def test_folder_of_a_run_that_made_its_first_step_and_then_calls_wrongly_is_kept(stk: Stk) -> None:
    """Its only step is 0, as in a loop over epochs."""
    script("import stk\nrun = stk.current_run()\nrun.log(step=0, loss=1)\nrun.log(step=1, loss='high')\n")
    done = stk("run", "--json", "--", sys.executable, "train.py")
    assert done.returncode == 2, done.stderr
    assert json.loads(done.stdout)["state"] == "failed"
    assert the_run().metrics.exists()
