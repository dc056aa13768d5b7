"""Processes that a script starts survive a signal to all, end with their parent, and keep its checkpoint."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import RunDir

from .interrupted import ALL_STEPS, STEP, TOTAL, Interrupted, logged_steps

#: Reads its samples in two processes, and ends with the sum of all.
LOADER = f"""
import stk
run = stk.current_run()
import torch
from torch.utils.data import DataLoader
from moments import reached

latest = run.latest_checkpoint()
step, total = map(int, (latest / "state").read_text().split()) if latest else (0, 0)
for batch in DataLoader(range(step, {TOTAL}), num_workers=2, multiprocessing_context="fork"):
    step, total = step + 1, total + int(batch)
    run.log(step=step, total={TOTAL}, loss=total)
    reached(step)
    if run.should_stop():
        with run.checkpoint(step) as folder:
            (folder / "state").write_text(f"{{step}} {{total}}")
        run.leave()
print("weights", total)
"""

#: A child gets SIGTERM from another process, answers its parent, and gets SIGTERM from its parent.
OBEYS = """
import multiprocessing, signal, subprocess, time
import stk
stk.current_run()


def child(pipe):
    while True:
        pipe.recv()
        while signal.sigpending():
            time.sleep(0.01)
        pipe.send("alive")


ours, theirs = multiprocessing.Pipe()
process = multiprocessing.get_context("fork").Process(target=child, args=(theirs,))
process.start()
for _ in range(2):
    subprocess.run(["kill", "-TERM", str(process.pid)], check=True)
    ours.send("?")
    print(ours.recv())
process.terminate()
process.join(60)
print(process.exitcode)
process.kill()
"""

#: Leaving the block ends the processes of the pool by SIGTERM.
POOL = """
import multiprocessing
import stk
stk.current_run()


def double(number):
    return 2 * number


if __name__ == "__main__":
    with multiprocessing.get_context("forkserver").Pool(2) as pool:
        print(sum(pool.map(double, range(4))))
"""

#: A program that a script starts gets no blocked signals, also by way of a fork that runs Python.
EXECUTES = """
import subprocess, sys
import stk
stk.current_run()
blocked = "import signal; print(set(signal.pthread_sigmask(signal.SIG_BLOCK, ())))"
subprocess.run([sys.executable, "-c", blocked], preexec_fn=lambda: None, check=True)
"""

#: A child process asks for the newest checkpoint, as to evaluate it, while its parent writes another one.
EVALUATES = """
import multiprocessing, sys
import stk


def ask():
    print(stk.current_run().latest_checkpoint().name)


if __name__ == "__main__":
    run = stk.current_run()
    with run.checkpoint(1) as folder:
        (folder / "state").touch()
    with run.checkpoint(2) as folder:
        (folder / "state").touch()
        child = multiprocessing.get_context(sys.argv[1]).Process(target=ask)
        child.start()
        child.join()
        (folder / "more").touch()
"""


def in_a_run(folder: Path, code: str) -> str:
    """Execute code as a script of a run does; return its output."""
    places = {"STK_RUN_DIR": str(folder), "STK_ATTEMPT": "1", "STK_STOP_FILE": str(folder / "stop")}
    return executed(folder, code, places)


def executed(folder: Path, code: str, places: dict[str, str], *arguments: str) -> str:
    """Execute code as a script with these variables and arguments; return its output."""
    (folder / "script.py").write_text(code)
    command = [sys.executable, str(folder / "script.py"), *arguments]
    done = subprocess.run(command, env=os.environ | places, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def test_script_with_loader_workers_saves_at_a_signal_to_all_processes(tmp_path: Path) -> None:
    script = Interrupted(tmp_path, LOADER)
    run = script.stopped(1)
    assert run.checkpoint_steps() == [STEP]
    assert script.train(1) == f"weights {sum(range(TOTAL))}"
    assert logged_steps(run) == ALL_STEPS
    assert [each.why for each in read_attempts(run)] == ["SIGTERM", "finished"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs sigwaitinfo")
def test_forked_process_obeys_only_its_parent(tmp_path: Path) -> None:
    assert in_a_run(tmp_path, OBEYS).split() == ["alive", "alive", "-15"]


def test_started_program_has_no_blocked_signals(tmp_path: Path) -> None:
    assert in_a_run(tmp_path, EXECUTES).strip() == "set()"


@pytest.mark.parametrize("is_in_run", [True, False])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_process_that_reads_a_checkpoint_leaves_the_one_that_is_being_written(
    tmp_path: Path, method: str, is_in_run: bool
) -> None:
    run = tmp_path if is_in_run else tmp_path / "alone" / "script"
    places = {"STK_RUN_DIR": str(run), "STK_ATTEMPT": "1", "STK_STOP_FILE": str(run / "stop")}
    alone = {"STK_EXPERIMENT_DIR": str(tmp_path)}
    assert executed(tmp_path, EVALUATES, places if is_in_run else alone, method) == "step_00000001\n"
    assert RunDir(run).checkpoint_steps() == [1, 2]


def test_pool_of_a_fork_server_ends(tmp_path: Path) -> None:
    """Its processes are children of the server, and SIGTERM comes from the script."""
    assert in_a_run(tmp_path, POOL) == "12\n"


def test_library_multiprocess_is_told_at_the_first_fork_after_its_import(tmp_path: Path) -> None:
    program = """
import os, sys, types
import stk
stk.current_run()
told = []
util = types.SimpleNamespace(register_after_fork=lambda *given: told.append(given))
sys.modules["multiprocess.util"] = util
for _ in range(2):
    if os.fork() == 0:
        os._exit(0)
    os.wait()
print(len(told))
"""
    assert in_a_run(tmp_path, program) == "1\n"
