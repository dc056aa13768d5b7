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
