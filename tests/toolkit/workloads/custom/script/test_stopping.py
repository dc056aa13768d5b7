"""A signal after the end of the process that started a script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: It is asked to leave once its parent has ended.
ORPHAN = """
import os, signal, time
import stk
run, parent = stk.current_run(), os.getppid()
print("ready", flush=True)
while os.getppid() == parent:
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGTERM)
print("asked", run.should_stop())
"""


#: It runs as in `coverage run` and `torchrun --run-path`, which replace the main module.
UNDER_A_RUNNER = """
import multiprocessing, os, runpy, signal, sys, types
sys.modules["__main__"] = types.ModuleType("__main__")
runpy.run_path("script.py", run_name="__main__")
"""

SCRIPT = """
import os, signal
import stk
run = stk.current_run()
os.kill(os.getpid(), signal.SIGTERM)
print("asked", run.should_stop())
"""


def test_script_that_another_program_executes_is_asked_by_a_signal(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-c", UNDER_A_RUNNER],
        cwd=tmp_path,
        env=os.environ | {"STK_RUN_DIR": str(tmp_path), "STK_STOP_FILE": str(tmp_path / "stop")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "asked True\n", done.stderr


def dead_process() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@pytest.mark.parametrize("watcher", ["alive", "dead"])
def test_script_whose_wrapper_has_ended_leaves_only_if_stk_is_dead(tmp_path: Path, watcher: str) -> None:
    places = {
        "STK_RUN_DIR": str(tmp_path),
        "STK_STOP_FILE": str(tmp_path / "stop"),
        "STK_WATCHER": str(os.getpid() if watcher == "alive" else dead_process()),
    }
    wrapper = subprocess.Popen(
        ["sh", "-c", '"$0" -c "$1" < /dev/null & read line', sys.executable, ORPHAN],
        env=os.environ | places,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert wrapper.stdout is not None
    assert wrapper.stdout.readline() == "ready\n"
    output, _ = wrapper.communicate()
    assert output == ("asked True\n" if watcher == "alive" else "")
