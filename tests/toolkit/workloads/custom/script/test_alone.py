"""Two trainings of one script without `stk`: they would mix their checkpoints and metrics."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.toolkit.workloads.custom.script.interrupted import logged_steps
from tests.toolkit.workloads.custom.script.own_run import save, start
from toolkit.errors import UserError
from toolkit.run.run_dir import RunDir

#: Logs a step, and waits for the end of its standard input.
HOLDER = """
import sys, stk
run = stk.current_run()
run.log(step=1, loss=1.0)
print("holds", flush=True)
sys.stdin.read()
"""

#: Leaves a forked process behind, as a killed script leaves the workers of its data loader.
LEAVES_A_FORK = """
import os, sys, stk
stk.current_run().log(step=1, loss=1.0)
if os.fork() == 0:
    print("holds", flush=True)
    sys.stdin.read()
os._exit(0)
"""

#: Starts itself again for a test.
STARTS_ITSELF = """
import subprocess, sys, stk
run = stk.current_run()
run.latest_checkpoint()
if sys.argv[1:]:
    run.log(step=2, split="test", loss=1.0)
else:
    run.log(step=1, loss=1.0)
    subprocess.run([sys.executable, __file__, "test"], check=True)
"""


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path / "alone" / "train")


@contextmanager
def living(folder: Path, code: str) -> Iterator[subprocess.Popen[str]]:
    """A script that lives until the end of the block; it has said that it holds the folder."""
    script = folder / "train.py"
    script.write_text(code)
    environ = os.environ | {"STK_EXPERIMENT_DIR": str(folder), "STK_CHECKPOINTS_TAKEN": ""}
    with subprocess.Popen(
        [sys.executable, str(script)], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        yield process


def test_second_training_is_refused_while_the_first_lives(run: RunDir, tmp_path: Path) -> None:
    with living(tmp_path, HOLDER) as first:
        written = run.metrics.read_bytes()
        for call in (
            lambda: start(run).latest_checkpoint(),
            lambda: start(run).log(step=1, loss=2.0),
            lambda: save(start(run), 7),
        ):
            with pytest.raises(UserError, match=rf"alone/train: process {first.pid} .*stk run"):
                call()
        assert run.metrics.read_bytes() == written
        assert run.checkpoint_steps() == []
        first.kill()
        first.wait()
        save(start(run), 7)
    assert run.checkpoint_steps() == [7]


def test_fork_that_outlives_the_training_does_not_keep_the_folder(run: RunDir, tmp_path: Path) -> None:
    with living(tmp_path, LEAVES_A_FORK) as first:
        first.wait()
        save(start(run), 7)
    assert run.checkpoint_steps() == [7]


def test_training_whose_folder_was_deleted_does_not_write_into_the_next_ones(
    run: RunDir, tmp_path: Path
) -> None:
    first = start(run)
    first.log(step=1, loss=1.0)
    shutil.rmtree(run.path)
    with living(tmp_path, HOLDER), pytest.raises(UserError, match="another training"):
        save(first, 2)


def test_script_may_start_itself_for_a_test(run: RunDir, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(STARTS_ITSELF)
    environ = os.environ | {"STK_EXPERIMENT_DIR": str(tmp_path)}
    subprocess.run([sys.executable, str(script)], env=environ, check=True)
    assert logged_steps(run, "test") == [2]
