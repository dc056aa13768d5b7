"""Checkpoints of a script; one process, no torch."""

from __future__ import annotations

import errno
import json
import logging
import os
import pkgutil
import shutil
import subprocess
import sys
import traceback
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.toolkit.workloads.custom.script.own_run import save, start
from toolkit.checkpoint.paths import matches_manifest
from toolkit.errors import CheckpointError, UserError
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json
from toolkit.run.events import read_events, save_events
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.workloads.custom.command.failure import failure_of
from toolkit.workloads.custom.script import checkpoints, current_run, ranks, resuming
from toolkit.workloads.custom.script.place import Place, find_place


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path / "run")


def test_saved_checkpoint_is_found_with_its_content(run: RunDir) -> None:
    assert start(run).latest_checkpoint() is None
    assert not run.path.exists()
    save(start(run), 7)
    folder = start(run).latest_checkpoint()
    assert folder == run.checkpoint(7)
    assert (folder / "parts" / "0.txt").read_text() == "state 7"
    assert matches_manifest(folder)
    assert run.last.resolve() == folder
    (event,) = save_events(run)
    assert event.bytes == len("state 7")


def test_ranks_meet_again_and_again_while_rank_0_completes_a_checkpoint(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One collective would reach its time limit if the checksums of a large checkpoint take longer."""
    meetings: list[float] = []
    is_met, complete = Event(), checkpoints.commit

    def meet(value: float) -> list[float]:
        meetings.append(value)
        if meetings[-2:] == [1, 1]:
            is_met.set()
        return [value]

    def commit(*args: Any) -> int:
        assert is_met.wait(10)
        return complete(*args)

    monkeypatch.setattr(ranks, "group", lambda: SimpleNamespace(get_world_size=lambda: 1))
    monkeypatch.setattr(ranks, "largest", meet)
    monkeypatch.setattr(current_run, "largest", lambda *values: values)
    monkeypatch.setattr(ranks, "_MEET_EVERY_S", 0)
    monkeypatch.setattr(checkpoints, "commit", commit)
    save(start(run), 7)
    assert run.checkpoint_steps() == [7]
    assert meetings[-2:] == [0, 0]
    monkeypatch.setattr(checkpoints, "commit", complete)
    with pytest.raises(UserError, match=r"^run\.checkpoint\(8\)"), start(run).checkpoint(8):
        pass


def test_script_without_stk_says_that_it_continues(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    """It may have been called with other settings, which no identity separates."""
    save(start(run), 7)
    assert start(run).latest_checkpoint() is not None
    told = capsys.readouterr().err
    assert "step 7" in told
    assert str(run.path) in told


def test_another_number_of_processes_is_warned_of(run: RunDir, caplog: pytest.LogCaptureFixture) -> None:
    save(start(run), 7)
    with caplog.at_level(logging.WARNING, "toolkit"):
        assert resuming._answer(Place(run=run, rank=0, size=2)) == {"step": 7}
    assert "saved with WORLD_SIZE 1, and now it is 2" in caplog.text


@pytest.mark.parametrize("fold, attempt, is_refused", [("1", 1, True), ("0", 1, False), ("1", 2, False)])
def test_training_after_another_one_of_its_attempt_is_refused_unless_it_has_the_same_command_line(
    fold: str, attempt: int, is_refused: bool, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a loop over folds, whose later ones would continue from the first; not in `until python …`."""
    (run.path / "ranks").mkdir(parents=True)

    def begin(fold: str, attempt: int) -> None:
        monkeypatch.setattr(resuming, "_begun", [])
        monkeypatch.setattr(sys, "argv", ["train.py", "--fold", fold])
        resuming.begin_once(Place(run=run, rank=0, size=1, attempt=attempt), "trainer.fit")

    begin("0", 1)
    with pytest.raises(UserError, match="stk sweep") if is_refused else nullcontext():
        begin(fold, attempt)


def newest(run: RunDir, rank: int) -> resuming.Newest:
    """What a new process of one of two ranks asks for the newest checkpoint."""
    return resuming.Newest(Place(run=run, rank=rank, size=2, attempt=1, nonce="7.0.0"))


def test_second_process_of_a_rank_does_not_get_the_answer_to_the_first(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in `train.py && test.py`, where rank 1 may ask first."""
    monkeypatch.setattr(resuming, "_TIMEOUT_S", -1.0)
    (run.path / "ranks").mkdir(parents=True)
    main, other = newest(run, 0), newest(run, 1)
    assert [each.step() for each in (main, other)] == [None, None]
    save(start(run), 7)
    assert [each.step() for each in (main, other)] == [7, 7]
    save(start(run), 8)
    later = newest(run, 1)
    with pytest.raises(CheckpointError, match="waited"):
        later.step()
    assert [each.step() for each in (newest(run, 0), newest(run, 1))] == [8, 8]


def test_rank_whose_processes_ended_before_they_asked_gets_the_newest_answer(run: RunDir) -> None:
    (run.path / "ranks").mkdir(parents=True)
    assert newest(run, 0).step() is None
    save(start(run), 7)
    main, other = newest(run, 0), newest(run, 1)
    assert [each.step() for each in (main, other)] == [7, 7]
    save(start(run), 8)
    assert [each.step() for each in (main, other)] == [8, 8]


def test_save_is_refused_in_a_process_group_of_another_size(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the processes of torch.multiprocessing.spawn, which all have the RANK of their parent."""
    monkeypatch.setattr(current_run, "group", lambda: SimpleNamespace(get_world_size=lambda: 4))
    with pytest.raises(UserError, match="has 4 processes, but WORLD_SIZE is 1"):
        save(start(run), 7)
    assert run.checkpoint_steps() == []


def test_damaged_checkpoint_is_rejected_and_the_previous_checkpoint_is_used(run: RunDir) -> None:
    for step in (1, 2):
        save(start(run), step)
    (run.checkpoint(2) / "parts" / "0.txt").write_text("STATE 0")
    assert start(run).latest_checkpoint() == run.checkpoint(1)
    assert run.checkpoint_steps() == [1]
    assert run.last.resolve() == run.checkpoint(1)
    (rejected,) = read_events(run, "checkpoint_rejected")
    assert "0.txt" in rejected.facts["reason"]


@pytest.mark.parametrize(
    "reader, number, is_kept",
    [
        ("toolkit.checkpoint.checksums.crc32", errno.ESTALE, True),
        ("toolkit.checkpoint.checksums.crc32", errno.ETIMEDOUT, True),
        ("toolkit.workloads.custom.script.checkpoints.read_json", errno.ESTALE, True),
        ("os.stat", errno.ESTALE, True),
        ("toolkit.checkpoint.checksums.crc32", errno.EIO, False),
    ],
)
def test_checkpoint_that_cannot_be_read_for_a_moment_is_kept(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, reader: str, number: int, is_kept: bool
) -> None:
    """As by a server that restarts. The next attempt reads it. A bad sector stays bad."""
    for step in (1, 2):
        save(start(run), step)
    read, newest = pkgutil.resolve_name(reader), str(run.checkpoint(2))

    def fail(path: Any, **options: Any) -> Any:
        if str(path).startswith(newest):
            raise OSError(number, os.strerror(number), path)
        return read(path, **options)

    monkeypatch.setattr(reader, fail)
    if is_kept:
        with pytest.raises(CheckpointError) as raised:
            start(run).latest_checkpoint()
        output = "".join(traceback.format_exception(raised.value))
        assert failure_of(World.single(), 1, output, None)["class"] == "io"
        assert run.checkpoint_steps() == [1, 2]
    else:
        assert start(run).latest_checkpoint() == run.checkpoint(1)


@pytest.mark.parametrize("files", [None, {"../../outside": {"bytes": 0, "crc32": 0}}])
def test_start_is_refused_if_all_checkpoints_are_damaged(run: RunDir, files: dict[str, Any] | None) -> None:
    save(start(run), 1)
    manifest = run.checkpoint(1) / "MANIFEST.json"
    manifest.unlink() if files is None else manifest.write_text(json.dumps({"files": files}))
    with pytest.raises(CheckpointError, match="refusing to start from the beginning"):
        start(run).latest_checkpoint()
    assert run.checkpoint_steps() == [1]


@pytest.mark.parametrize("step", [np.int64(7), np.asarray(7), torch.tensor(7)])
def test_step_of_a_checkpoint_may_be_an_array_or_a_tensor(run: RunDir, step: Any) -> None:
    save(start(run), step)
    assert start(run).latest_checkpoint() == run.checkpoint(7)


def test_newest_and_best_checkpoints_are_kept(run: RunDir) -> None:
    script = start(run)
    for step in range(1, 6):
        save(script, step, best=step == 2)
    assert run.checkpoint_steps() == [2, 4, 5]
    assert run.best.resolve() == run.checkpoint(2)
    save(script, 6, best=True, keep=1)
    assert run.checkpoint_steps() == [6]


@pytest.mark.parametrize("name", ["last", "best"])
@pytest.mark.parametrize("is_folder", [True, False])
def test_files_of_the_user_under_the_names_of_links_stay(
    name: str, is_folder: bool, run: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    own = run.checkpoints / name / "model.pt" if is_folder else run.checkpoints / name
    own.parent.mkdir(parents=True)
    own.write_text("of the user")
    for step in (1, 2, 3):
        save(start(run), step, best=step == 1)
    assert own.read_text() == "of the user"
    assert str(run.checkpoints / name) in caplog.text
    (run.checkpoints / name).rename(run.path / "moved")
    save(start(run), 1, best=False)
    save(start(run), 4)
    save(start(run), 5)
    assert run.checkpoint_steps() == [1, 4, 5]
    assert (run.best.resolve(), run.last.resolve()) == (run.checkpoint(1), run.checkpoint(5))


def test_interrupted_replacement_of_a_copied_checkpoint_stops_no_later_one(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(start(run), 1)
    run.last.unlink()
    shutil.copytree(run.checkpoint(1), run.last)
    with monkeypatch.context() as patch:

        def interrupted(folder: Path, ignore_errors: bool = False) -> None:
            if not ignore_errors:
                (folder / "MANIFEST.json").unlink()
                raise KeyboardInterrupt

        patch.setattr(shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            save(start(run), 2)
    save(start(run), 3, keep=1)
    assert run.last.resolve() == run.checkpoint(3)
    assert start(run).latest_checkpoint() == run.checkpoint(3)
    assert run.checkpoint_steps() == [3]
    assert run.checkpoint_leftovers() == []


def test_half_copied_checkpoint_under_the_name_of_a_link_stops_no_deletion(run: RunDir) -> None:
    run.last.mkdir(parents=True)
    for step in (1, 2, 3):
        save(start(run), step, best=step == 1, keep=1)
    assert run.checkpoint_steps() == [1, 3]
    assert run.best.resolve() == run.checkpoint(1)


def test_new_checkpoint_of_a_lower_step_is_not_deleted(run: RunDir) -> None:
    for step in (100, 200):
        save(start(run), step)
    save(start(run), 10, keep=1)
    assert run.checkpoint_steps() == [10, 200]


def test_saving_a_step_again_replaces_its_checkpoint(run: RunDir) -> None:
    save(start(run), 1, "first")
    save(start(run), 1, "second")
    assert (run.checkpoint(1) / "parts" / "0.txt").read_text() == "second 1"
    assert run.checkpoint_leftovers() == []


def test_error_while_saving_leaves_no_checkpoint(run: RunDir) -> None:
    with pytest.raises(ZeroDivisionError), start(run).checkpoint(1):
        _ = 1 / 0
    assert list(run.checkpoints.iterdir()) == []


@pytest.mark.parametrize("tidies", ["the next attempt", "the next save"])
def test_error_of_one_rank_while_saving_keeps_the_files_of_the_others(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, tidies: str
) -> None:
    monkeypatch.setattr(current_run, "group", lambda: SimpleNamespace(get_world_size=lambda: 2))
    with suppress(ZeroDivisionError), start(run, rank=1, size=2).checkpoint(1) as folder:
        (folder / "rank_0.pt").write_text("another rank writes this")
        _ = 1 / 0
    assert (folder / "rank_0.pt").exists()
    assert run.checkpoint_steps() == []
    if tidies == "the next attempt":
        assert start(run).latest_checkpoint() is None
    else:
        save(start(run, size=2), 2)
    assert run.checkpoint_leftovers() == []


@pytest.mark.parametrize(
    "changed, process, is_kept",
    [
        ({}, 2, True),
        # The same process, another attempt, and processes that torchrun has started again.
        ({}, 1, False),
        ({"attempt": 3, "nonce": "8.0.0"}, 2, False),
        ({"restart": 1}, 2, False),
    ],
)
def test_folders_of_a_save_are_left_to_the_script_that_has_started_this_process(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], process: int, is_kept: bool
) -> None:
    monkeypatch.delenv("STK_CHECKPOINTS_TAKEN", raising=False)
    place = Place(run=run, rank=0, size=1, attempt=2, nonce="7.0.0")
    monkeypatch.setattr("os.getpid", lambda: 1)
    assert place.take_checkpoints()
    folders = [
        run.checkpoints / f".step_00000002.{end}" for end in ("start_2.tmp", "7.0.0.trash", "replaced")
    ]
    for each in folders:
        each.mkdir(parents=True)
    run.checkpoint(2).mkdir()
    monkeypatch.setattr("os.getpid", lambda: process)
    resuming._answer(replace(place, **changed))
    assert [each.exists() for each in folders] == [is_kept] * 3


@pytest.mark.parametrize("step", [-1, 100_000_000, 1.5])
def test_invalid_step_of_a_checkpoint_is_refused(run: RunDir, step: int) -> None:
    with pytest.raises(UserError, match="checkpoint"), start(run).checkpoint(step):
        pass
    assert not run.path.exists()


@pytest.mark.parametrize("target", [".", "state.txt"])
def test_symbolic_link_in_a_checkpoint_is_refused(target: str, run: RunDir) -> None:
    def save_link() -> None:
        with start(run).checkpoint(1) as folder:
            (folder / "state.txt").write_text("state")
            (folder / "latest").symlink_to(target)

    with pytest.raises(UserError, match=r"latest.*copy its content"):
        save_link()
    assert run.checkpoint_steps() == []


def test_ranks_without_a_process_group_can_neither_resume_nor_save(run: RunDir) -> None:
    with pytest.raises(UserError, match="init_process_group"):
        start(run, size=2).latest_checkpoint()
    with pytest.raises(UserError, match="init_process_group"), start(run, rank=1, size=2).checkpoint(1):
        pass


def test_leave_exits_with_status_75(run: RunDir) -> None:
    with pytest.raises(SystemExit) as left:
        start(run).leave()
    assert left.value.code == ExitCode.YIELDED == 75


def test_run_without_stk_is_named_after_the_script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["some/where/train.py", "--lr", "1"])
    assert find_place({}).run.path == tmp_path / "alone" / "train"
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert find_place({}).run.path == tmp_path / "alone" / "session"
    with pytest.raises(UserError, match="RANK is 'one'"):
        find_place({"RANK": "one"})


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)


def test_current_run_does_not_import_torch(tmp_path: Path) -> None:
    code = (
        "import sys, stk\n"
        "run = stk.current_run(); run.latest_checkpoint(); run.should_stop(); run.log(step=1, loss=1)\n"
        "with run.checkpoint(1) as folder: (folder / 'state').write_text('')\n"
        "print([name for name in ('torch', 'numpy', 'safetensors', 'rich') if name in sys.modules])"
    )
    done = python(code, tmp_path)
    assert done.stdout.strip() == "[]", done.stderr


def test_failed_script_leaves_its_last_step_in_the_progress_file(tmp_path: Path) -> None:
    code = (
        "import stk\n"
        "run = stk.current_run()\n"
        "for step in range(1, 16): run.log(step=step, total=60, loss=1 / step)\n"
        "raise ValueError('labels')"
    )
    assert "labels" in python(code, tmp_path).stderr
    (progress,) = tmp_path.rglob("progress.json")
    shown = read_json(progress)
    assert (shown["step"], shown["metrics"]) == (15, {"train_loss": 1 / 15})
