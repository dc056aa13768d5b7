"""Two trainings of one script without `stk`: they would mix their checkpoints and metrics."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from tests.toolkit.workloads.custom.script.interrupted import logged_steps
from tests.toolkit.workloads.custom.script.own_run import save, start
from toolkit.errors import UserError
from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.script import metrics
from toolkit.workloads.custom.script.alone import hold_stand_in
from toolkit.workloads.custom.script.place import Place

#: Logs a step, and waits for the end of its standard input.
HOLDER = """
import sys, stk
run = stk.current_run()
run.latest_checkpoint()
run.log(step=1, loss=1.0)
print("holds", flush=True)
sys.stdin.read()
"""

ONLY_ASKS = HOLDER.replace("run.log(step=1, loss=1.0)\n", "")

#: Leaves a forked process behind, as a killed script leaves the workers of its data loader.
LEAVES_A_FORK = """
import os, sys, stk
run = stk.current_run()
run.latest_checkpoint()
run.log(step=1, loss=1.0)
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


def place_in(run: RunDir) -> Place:
    return Place(run=run, rank=0, size=1)


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
        for call in (lambda: start(run).latest_checkpoint(), lambda: save(start(run), 7)):
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


def test_second_training_is_refused_before_the_first_has_a_folder(run: RunDir, tmp_path: Path) -> None:
    with living(tmp_path, ONLY_ASKS), pytest.raises(UserError, match="another training"):
        start(run).latest_checkpoint()
    assert not run.path.exists()


def test_what_asks_for_no_checkpoint_may_log_beside_a_training(run: RunDir, tmp_path: Path) -> None:
    with living(tmp_path, HOLDER):
        start(run).log(step=1, split="test", loss=2.0)
    assert (logged_steps(run, "train"), logged_steps(run, "test")) == ([1], [1])


def test_what_logs_beside_a_training_without_progress_keeps_its_lines(run: RunDir, tmp_path: Path) -> None:
    with living(tmp_path, HOLDER):
        run.progress.unlink()
        start(run).log(step=1, split="validation", loss=2.0)
    assert (logged_steps(run, "train"), logged_steps(run, "validation")) == ([1], [1])


def test_training_does_not_refuse_itself_while_the_folder_cannot_be_read(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = start(run)
    save(own, 1)

    def stale(self: Path) -> NoReturn:
        raise OSError(errno.ESTALE, "stale file handle")

    with monkeypatch.context() as patched:
        patched.setattr(type(run.path), "stat", stale)
        hold_stand_in(place_in(run))
    save(own, 2)
    assert run.checkpoint_steps() == [1, 2]


def test_refused_training_that_goes_on_to_log_keeps_the_lines_of_the_other(
    run: RunDir, tmp_path: Path
) -> None:
    second = start(run)
    with living(tmp_path, HOLDER):
        with pytest.raises(UserError, match="another training"):
            second.latest_checkpoint()
        second.log(step=1, loss=2.0)
    assert logged_steps(run, "train") == [1, 1]


def test_folder_that_was_deleted_to_start_anew_is_made_again(run: RunDir) -> None:
    own = start(run)
    for _ in range(2):
        assert own.latest_checkpoint() is None
        own.log(step=1, total=1, loss=1.0)
        assert logged_steps(run, "train") == [1]
        shutil.rmtree(run.path)


def test_folder_that_another_host_deleted_is_not_held_any_more(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """NFS has no facts of the open file then."""
    hold_stand_in(place_in(run))
    shutil.rmtree(run.path.parent)
    facts_of, errors = os.fstat, iter([OSError(errno.ESTALE, "stale file handle")])

    def stale_once(descriptor: int) -> os.stat_result:
        for error in errors:
            raise error
        return facts_of(descriptor)

    with living(tmp_path, HOLDER), monkeypatch.context() as patched:
        patched.setattr(os, "fstat", stale_once)
        with pytest.raises(UserError, match="another training"):
            hold_stand_in(place_in(run))


def test_training_whose_folder_was_deleted_does_not_log_into_that_of_the_next(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = start(run)
    own.latest_checkpoint()
    own.log(step=1, loss=1.0)
    shutil.rmtree(run.path.parent)
    with living(tmp_path, HOLDER):
        # Whether the folder is still its own is asked every two seconds.
        monkeypatch.setattr(metrics, "_PROGRESS_EVERY_S", -1.0)
        with pytest.raises(UserError, match="another training"):
            own.log(step=2, loss=2.0)
    assert logged_steps(run, "train") == [1]


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_lock_that_is_no_file_is_refused_and_a_link_is_not_followed(
    kind: str, run: RunDir, tmp_path: Path
) -> None:
    own, target, lock = start(run), tmp_path / "thesis.txt", run.path.with_name(".train.lock")
    target.write_text("important")
    lock.parent.mkdir()
    {"link": lambda: lock.symlink_to(target), "pipe": lambda: os.mkfifo(lock), "folder": lock.mkdir}[kind]()
    for call in (own.latest_checkpoint, lambda: save(own, 1)):
        with pytest.raises(UserError, match=r"\.train\.lock .*remove it"):
            call()
    if kind != "folder":
        # Without a request for a checkpoint, the lock is only looked at.
        with pytest.raises(UserError, match="remove it"):
            own.log(step=1, loss=1.0)
    assert target.read_text() == "important"


def test_lock_of_another_user_is_refused(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """The superuser of these tests may open every file."""
    lock = run.path.with_name(".train.lock")
    lock.parent.mkdir()
    lock.touch()

    def open_as_user(path: str, *flags: int, original: Callable[..., int] = os.open) -> int:
        if path == str(lock):
            raise PermissionError(errno.EACCES, "Permission denied")
        return original(path, *flags)

    monkeypatch.setattr(os, "open", open_as_user)
    with pytest.raises(UserError, match="STK_EXPERIMENT_DIR"):
        start(run).latest_checkpoint()
    assert not run.path.exists()


def test_interruption_while_the_folder_is_locked_leaves_it_free(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*way: object) -> NoReturn:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("fcntl.flock", interrupted)
        with pytest.raises(KeyboardInterrupt):
            hold_stand_in(place_in(run))
    with living(tmp_path, HOLDER), pytest.raises(UserError, match="another training"):
        hold_stand_in(place_in(run))


def test_threads_do_not_refuse_each_other(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        for number in range(50):
            list(threads.map(hold_stand_in, [place_in(RunDir(tmp_path / f"{number}"))] * 8))


def test_deleted_folder_of_a_living_training_is_not_free(run: RunDir, tmp_path: Path) -> None:
    with living(tmp_path, HOLDER):
        shutil.rmtree(run.path)
        with pytest.raises(UserError, match="another training"):
            save(start(run), 7)


def test_training_without_its_lock_does_not_save_into_the_next_ones_folder(
    run: RunDir, tmp_path: Path
) -> None:
    """As after `rm -r experiments`."""
    first = start(run)
    first.latest_checkpoint()
    first.log(step=1, loss=1.0)
    shutil.rmtree(run.path.parent)
    with living(tmp_path, HOLDER), pytest.raises(UserError, match="another training"):
        save(first, 2)


def test_script_may_start_itself_for_a_test(run: RunDir, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(STARTS_ITSELF)
    environ = os.environ | {"STK_EXPERIMENT_DIR": str(tmp_path)}
    subprocess.run([sys.executable, str(script)], env=environ, check=True)
    assert logged_steps(run, "test") == [2]
