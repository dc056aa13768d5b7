"""When a script notices that it is asked to stop, also after the end of the process that started it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from toolkit.files import write_json
from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.script import stopping
from toolkit.workloads.custom.script.stopping import Agreement, Signals

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


def executed(code: str, folder: Path, environ: Mapping[str, str]) -> str:
    """Execute code in a folder; return its output."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def test_script_that_another_program_executes_is_asked_by_a_signal(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    places = {"STK_RUN_DIR": str(tmp_path), "STK_STOP_FILE": str(tmp_path / "stop")}
    assert executed(UNDER_A_RUNNER, tmp_path, os.environ | places) == "asked True\n"


#: As in a notebook, where a cell is executed again in the same process, and the kernel sets SIGINT before.
CELL = """
import os, signal, sys
import stk
sys.ps1 = "In : "
run = stk.current_run()
for execution in (1, 2, 3):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run.latest_checkpoint()
    run.catch_signals()
    if execution != 2:
        os.kill(os.getpid(), signal.SIGINT)
    print("asked", run.should_stop())
    if execution == 2:
        # As the cell scores the model.
        os.kill(os.getpid(), signal.SIGINT)
"""


#: As at a prompt, which does not set the handler of SIGINT between two cells.
PROMPT = """
import os, signal, sys
import stk
sys.ps1 = ">>> "
run = stk.current_run()
def send(number):
    try:
        os.kill(os.getpid(), number)
    except KeyboardInterrupt:
        print("interrupted")
def train():
    run.latest_checkpoint()
    print("asked", run.should_stop())
train()
# Between two trainings of one cell.
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2):
    send(number)
    train()
    train()
for number in (signal.SIGINT, signal.SIGTERM):
    send(number)
    send(signal.SIGINT)
    train()
"""


@pytest.mark.parametrize(
    "code, printed",
    [
        (CELL, "asked True\nasked False\nasked True\n"),
        (
            PROMPT,
            "asked False\n"
            + 3 * "asked True\nasked False\n"
            + "interrupted\nasked False\ninterrupted\nasked True\n",
        ),
    ],
    ids=["a cell that is executed again", "a second interrupt ends the cell"],
)
def test_training_in_a_session_is_asked_once_by_each_interrupt(
    code: str, printed: str, tmp_path: Path
) -> None:
    alone = {key: value for key, value in os.environ.items() if key != "STK_RUN_DIR"}
    assert executed(code, tmp_path, alone) == printed


@pytest.fixture
def dead() -> Iterator[int]:
    """A zombie process."""
    process = os.posix_spawnp("true", ["true"], os.environ)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    yield process
    os.waitpid(process, 0)


@pytest.mark.parametrize("alive", [("watcher",), ("restarter",), ("restarter", "next attempt"), ()])
def test_script_whose_wrapper_has_ended_leaves_only_if_stk_is_dead(
    tmp_path: Path, dead: int, alive: tuple[str, ...]
) -> None:
    places = {
        "STK_RUN_DIR": str(tmp_path),
        "STK_STOP_FILE": str(tmp_path / "stop"),
        "STK_NONCE": "first",
        "STK_WATCHER": str(os.getpid() if "watcher" in alive else dead),
        "STK_RESTARTER": str(os.getpid() if "restarter" in alive else dead),
    }
    if "next attempt" in alive:
        write_json(RunDir(tmp_path).fence, {"nonce": "second", "earlier": ["first"]})
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
    assert output == ("asked True\n" if len(alive) == 1 else "")


OF_ANOTHER_USER = """
import os, signal
import stk
run = stk.current_run()
def kill(process, number):
    raise PermissionError
os.kill = kill
signal.raise_signal(signal.SIGTERM)
print("asked", run.should_stop())
"""


def test_stk_of_another_user_is_not_taken_for_dead(tmp_path: Path) -> None:
    """A script below `setpriv` in a container may send no signal to stk."""
    environ = {
        "STK_RUN_DIR": str(tmp_path),
        "STK_STOP_FILE": str(tmp_path / "stop"),
        "STK_NONCE": "first",
        "STK_WATCHER": str(os.getpid()),
    }
    assert executed(OF_ANOTHER_USER, tmp_path, os.environ | environ) == "asked True\n"


class Training:
    """Calls of one rank that tell how long they took."""

    def __init__(self, stop_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now = 0.0
        self.signals = Signals()
        self._agreement = Agreement(self.signals, stop_file)
        monkeypatch.setattr(stopping, "time", SimpleNamespace(monotonic=lambda: self._now))

    def leaves_after(self, calls: int, seconds: float, *, evaluates: bool = False) -> bool:
        """Whether it leaves at the last of some calls, with these seconds before each."""
        leaves = False
        for _ in range(calls):
            self._now += seconds
            leaves = self._agreement.should_stop(None, evaluates=evaluates)
        return leaves


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Training:
    return Training(tmp_path / "stop", monkeypatch)


@pytest.mark.parametrize("batches", [500, 520, 540])
def test_ranks_notice_a_stop_at_the_first_step_after_an_evaluation(
    batches: int, training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its batches are faster than steps, so that many make the time between two agreements."""
    monkeypatch.setattr(stopping, "group", lambda: "a group")
    training.leaves_after(20, 2.0)
    training.leaves_after(batches, 0.005, evaluates=True)
    training.signals.came = True
    assert training.leaves_after(1, 2.0)


@pytest.mark.parametrize("way, seconds", [("signal", 0.001), ("file", 60.0)])
def test_process_without_a_group_notices_a_stop_at_its_next_call(
    way: str, seconds: float, training: Training, tmp_path: Path
) -> None:
    training.leaves_after(50, 0.001)
    if way == "signal":
        training.signals.came = True
    else:
        (tmp_path / "stop").touch()
    assert training.leaves_after(1, seconds)
