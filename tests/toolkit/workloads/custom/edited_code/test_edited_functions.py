"""Code that was edited after a run was created is named, and used only on request."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.run.attempts.attempts import start
from tests.toolkit.workloads.custom.edited_code.conftest import Begun, edit
from tests.toolkit.workloads.custom.own_digits import write_digits
from toolkit.config import load, load_resolved
from toolkit.errors import UserError
from toolkit.run.create_run import create_run
from toolkit.run.events import note_event, read_events
from toolkit.run.kept_code.edited_code import (
    NEW_CODE,
    edit_warnings,
    edit_warnings_of_many,
    edits_since,
    new_code_of,
    other_code_warnings,
    take_new_code,
)
from toolkit.run.new_settings import take_new_settings
from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.functions.user_code import UserCode, prediction_fault


def test_code_with_a_later_modification_time_is_not_edited(begun: Begun, tmp_path: Path) -> None:
    run, experiment = begun
    (tmp_path / "work" / "digits.py").touch()
    assert not edits_since(run, experiment)
    assert edit_warnings(run, experiment, new_code=False) == []
    take_new_code(run, experiment, asked=True)
    assert not list(read_events(run))


def test_changed_new_and_removed_files_are_named(begun: Begun, tmp_path: Path) -> None:
    run, experiment = begun
    edit(tmp_path, "digits.py")
    edit(tmp_path, "my_project/layers.py")
    (tmp_path / "work" / "my_project" / "models.py").unlink()
    edits = edits_since(run, experiment)
    assert edits.own == ("digits.py", "my_project/layers.py", "my_project/models.py")
    assert edits.core == ()


def test_missing_user_code_is_reported_and_not_compared(begun: Begun, tmp_path: Path) -> None:
    run, experiment = begun
    shutil.rmtree(tmp_path / "work")
    assert not edits_since(run, experiment)
    (message,) = edit_warnings(run, experiment, new_code=False)
    assert message.startswith(f"{run.run_id} continues with its stored code")
    assert "digits.py" in message


def test_run_without_a_checkpoint_uses_the_edited_code(begun: Begun, tmp_path: Path) -> None:
    run, experiment = begun
    edit(tmp_path, "digits.py")
    (line,) = edit_warnings(run, experiment, new_code=False)
    assert "digits.py" in line
    assert "--new-code" not in line
    take_new_code(run, experiment, asked=False)
    assert not edits_since(run, experiment)


def test_run_with_a_checkpoint_keeps_its_code_unless_asked(begun: Begun, tmp_path: Path) -> None:
    run, experiment = begun
    run.checkpoint(3).mkdir(parents=True)
    edit(tmp_path, "digits.py")
    for name in ("task.py", "files.py"):
        (run.code / "toolkit" / name).write_text("# of before\n")
    take_new_code(run, experiment, asked=False)
    assert str(edits_since(run, experiment)) == "digits.py and slurm-toolkit itself"
    assert "--force" in edit_warnings(run, experiment, new_code=True)[0]
    take_new_code(run, experiment, asked=True)
    assert not edits_since(run, experiment)
    (event,) = (each for each in read_events(run) if each.name == NEW_CODE)
    assert (event.facts["files"], event.facts["step"]) == (["digits.py", "slurm-toolkit itself"], 3)
    assert not [path for path in run.path.iterdir() if path.name.startswith(".code")]


def test_new_code_of_a_module_is_found_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_digits(tmp_path / "work")
    shutil.copy(config.with_name("digits.py"), tmp_path / "work" / "my_project" / "digits.py")
    config.write_text("name: digits\ntask: my_project.digits\n")
    monkeypatch.chdir(config.parent)
    run = create_run(load(config), tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    edit(tmp_path, "my_project/digits.py")
    stored = load_resolved(run.config)
    take_new_code(run, stored, asked=True)
    assert not edits_since(run, stored)


def test_copy_of_an_old_file_is_not_old(tmp_path: Path) -> None:
    config = write_digits(tmp_path / "work")
    os.utime(config.with_name("digits.py"), (0, 0))
    run = create_run(load(config), tmp_path / "runs")
    assert (run.code / "project" / "digits.py").stat().st_mtime > config.stat().st_mtime - 60


@pytest.mark.parametrize("folder", ["toolkit", "project"])
def test_run_whose_code_has_lost_files_goes_on_only_with_new_code(
    begun: Begun, tmp_path: Path, folder: str
) -> None:
    run, experiment = begun
    run.checkpoint(3).mkdir(parents=True)
    for file in (run.code / folder).rglob("*.py"):
        file.unlink()
    with pytest.raises(UserError, match=folder):
        take_new_code(run, experiment, asked=False)
    take_new_code(run, experiment, asked=True)
    assert not edits_since(run, experiment)
    shutil.rmtree(run.code)
    (line,) = edit_warnings(run, experiment, new_code=False)
    assert "today's code" in line


def test_finished_run_whose_code_has_lost_files_is_not_said_to_have_other_code(
    begun: Begun, tmp_path: Path
) -> None:
    run, experiment = begun
    run.result.write_text("{}")
    run.checkpoint(3).mkdir(parents=True)
    copy = RunDir(tmp_path / "runs" / "other")
    for file in (run.code / "project").rglob("*.py"):
        file.unlink()
    shutil.copytree(run.path, copy.path)
    (alone,) = edit_warnings(run, experiment, new_code=False)
    assert other_code_warnings([begun]) == [alone]
    (line,) = other_code_warnings([begun, (copy, experiment)])
    assert alone in line
    assert all(each in line for each in (f"{run.code / 'project'} is empty", "2 runs", copy.run_id))
    assert "other code" not in line
    (going_on,) = edit_warnings_of_many([begun, (copy, experiment)], new_code=False)
    # Runs that must go on cannot.
    assert going_on != line
    assert going_on.endswith(alone)


def test_lost_copy_of_the_users_file_is_not_replaced_by_the_file_of_today(begun: Begun) -> None:
    run, experiment = begun
    (run.code / "project" / "digits.py").unlink()
    assert "copy of" in prediction_fault(experiment, run.path)


def test_link_to_the_code_of_a_sweep_is_replaced_by_a_copy(begun: Begun, tmp_path: Path) -> None:
    run, experiment = begun
    shared = tmp_path / "runs" / "shared"
    run.code.rename(shared)
    run.code.symlink_to(shared)
    edit(tmp_path, "digits.py")
    take_new_code(run, experiment, asked=True)
    assert not run.code.is_symlink()
    assert "# edited" not in (shared / "project" / "digits.py").read_text()


def test_equal_edits_of_several_runs_give_one_warning(begun: Begun, tmp_path: Path) -> None:
    run, experiment = begun
    shutil.copytree(run.path, tmp_path / "runs" / "other", symlinks=True)
    edit(tmp_path, "digits.py")
    (line,) = edit_warnings_of_many(
        [begun, (RunDir(tmp_path / "runs" / "other"), experiment)], new_code=False
    )
    assert "2 runs" in line
    assert "digits.py" in line


def test_messages_name_the_file_that_the_user_edits(begun: Begun, tmp_path: Path) -> None:
    run, experiment = begun
    code = UserCode(experiment.task, run.code)
    assert code.path.is_relative_to(run.code)
    assert code.place("step").startswith(f"{tmp_path / 'work' / 'digits.py'}:")
    shutil.rmtree(tmp_path / "work")
    assert UserCode(experiment.task, run.code).place("step").startswith(f"{code.path}:")


def test_number_that_is_corrected_to_an_equal_one_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script refuses `--steps 100000.0`, and 100000 has the same identity."""
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "train.yaml"
    (tmp_path / "train.py").touch()
    config.write_text(
        "name: own\ntask: {kind: command, run: [python3, train.py]}\nparams: {steps: 1e5, sizes: [2.0]}\n"
    )
    run = create_run(load(config), tmp_path / "runs")
    corrected = load(config, ["params.steps=100000", "params.sizes=[2]", "resources.time=5"])
    take_new_settings(create_run(corrected, tmp_path / "runs"), corrected)
    stored: Any = load_resolved(run.config)
    assert repr(stored.params) == "{'steps': 100000, 'sizes': [2]}"
    assert stored.resources.time is None


def test_new_code_taken_before_a_given_step_is_not_listed(begun: Begun) -> None:
    run, _ = begun
    note_event(run, NEW_CODE, files=["digits.py"], step=40)
    assert new_code_of(run, 40) == ["digits.py, from step 41 on"]
    assert new_code_of(run, 41) == []


def test_new_code_begins_where_the_first_attempts_with_it_began(begun: Begun, tmp_path: Path) -> None:
    run, experiment = begun
    start(run, of=0, to=50, why="preempted")
    run.checkpoint(40).mkdir(parents=True)
    edit(tmp_path, "digits.py")
    take_new_code(run, experiment, asked=True)
    assert new_code_of(run) == ["digits.py, from step 41 on"]
    start(run, of=10, to=10, why="import")
    assert new_code_of(run) == ["digits.py, from step 41 on"]
    # The checkpoint of step 40 is damaged, and then that of step 30.
    start(run, of=30, to=35, why="preempted")
    assert new_code_of(run) == ["digits.py, from step 31 on"]
    start(run, of=20)
    assert new_code_of(run, 20) == ["digits.py, from step 21 on"]
    assert new_code_of(run, 21) == []
