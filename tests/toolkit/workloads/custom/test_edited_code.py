"""Code that was edited after a run was created is named, and used only on request."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurm.api.planning import plan as api_plan
from slurm.cli import main
from tests.toolkit.run.attempts.attempts import start
from toolkit.config import load, load_resolved
from toolkit.config.schema import Experiment
from toolkit.errors import ConfigError, RunBusy, UserError
from toolkit.exit_codes import ExitCode
from toolkit.precheck.last_run import other_run_by_code
from toolkit.run.attempts.records import read_attempts
from toolkit.run.create_run import create_run, run_of
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
from toolkit.run.run_dir import RunDir, find_runs
from toolkit.workloads.custom.command.kept_files import LARGEST_FILE, make_work_folder
from toolkit.workloads.custom.functions.user_code import UserCode, prediction_fault

from .own_digits import write_digits

#: Saves, and exits with a given status; 75 asks for another attempt.
_TRAIN = """
import os, pathlib, sys
import helper
pathlib.Path(os.environ["STK_CHECKPOINT_DIR"], "saved").touch()
pathlib.Path("said").write_text(helper.SAYS)
sys.exit({})
"""

Begun = tuple[RunDir, Experiment]


@pytest.fixture
def begun(tmp_path: Path) -> Begun:
    """A run of three functions with its code, beside the folder in which the user works."""
    experiment = load(write_digits(tmp_path / "work"))
    return create_run(experiment, tmp_path / "runs"), experiment


def edit(tmp_path: Path, name: str, text: str = "# edited\n") -> None:
    file = tmp_path / "work" / name
    file.write_text((file.read_text() if file.exists() else "") + text)


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


def test_new_code_that_does_not_take_the_values_of_the_run_is_refused(begun: Begun, tmp_path: Path) -> None:
    """Its own code stays, and the run can continue with it."""
    run, experiment = begun
    run.checkpoint(3).mkdir(parents=True)
    file = tmp_path / "work" / "digits.py"
    text = file.read_text()
    assert "def model(" in text
    file.write_text(text.replace("def model(", "def model(depth: int, "))
    with pytest.raises(ConfigError, match=r"model\.depth"):
        take_new_code(run, experiment, asked=True)
    assert (run.code / "project" / "digits.py").read_text() == text
    file.write_text(text.replace("def model(", "def model(depth: int = 1, "))
    take_new_code(run, experiment, asked=True)
    assert not edits_since(run, experiment)


def test_new_code_of_a_task_with_its_own_optimizer_is_taken(tmp_path: Path) -> None:
    """The config of a run holds the defaults of all keys, which the user's functions need not take."""
    config = write_digits(tmp_path / "work")
    edit(tmp_path, "digits.py", "def optimizer(model, lr=0.1, weight_decay: float = 0.5): ...\n")
    edit(tmp_path, "digits.py", "def schedule(step, total): return 1.0\n")
    experiment = load(config)
    run = create_run(experiment, tmp_path / "runs")
    edit(tmp_path, "digits.py")
    take_new_code(run, load_resolved(run.config), asked=True)
    assert not edits_since(run, experiment)


@pytest.mark.parametrize(
    "before, after, key",
    [
        ("optimizer(model, lr=0.1)", "optimizer(model, decay, lr=0.1)", "decay"),
        ("optimizer(model, width: int, lr=0.1)", "optimizer(model, lr=0.1)", "width"),
        ("optimizer(model, lr=0.1)", "predict(model, batch)", "optimizer"),
    ],
    ids=["a new parameter", "a removed parameter", "a removed function"],
)
def test_new_code_whose_own_optimizer_does_not_fit_is_refused(
    before: str, after: str, key: str, tmp_path: Path
) -> None:
    config = write_digits(tmp_path / "work")
    file = config.with_name("digits.py")
    text = file.read_text()
    file.write_text(f"{text}\ndef {before}: ...\n")
    experiment = load(config, ["optimizer.width=3"] if "width" in before else [])
    run = create_run(experiment, tmp_path / "runs")
    run.checkpoint(3).mkdir(parents=True)
    file.write_text(f"{text}\ndef {after}: ...\n")
    with pytest.raises(ConfigError, match=key):
        take_new_code(run, load_resolved(run.config), asked=True)


def test_run_that_begins_anew_keeps_its_code_if_the_new_one_does_not_fit(
    begun: Begun, tmp_path: Path
) -> None:
    run, experiment = begun
    file = tmp_path / "work" / "digits.py"
    text = file.read_text()
    file.write_text(text.replace("def model(", "def model(depth: int, "))
    (line,) = edit_warnings(run, experiment, new_code=False)
    assert "its stored code" in line
    take_new_code(run, experiment, asked=False)
    assert (run.code / "project" / "digits.py").read_text() == text


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


def test_parameter_that_makes_another_run_is_named(
    begun: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, experiment = begun
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(run.path.parent))
    start(run, of=0, to=3)
    file = tmp_path / "work" / "digits.py"
    file.write_text(file.read_text().replace("def model(", "def model(depth: int = 1, "))
    edited = load(tmp_path / "work" / "digits.yaml")
    (line,) = other_run_by_code(run_of(edited), edited)
    assert run.run_id in line
    assert "model.depth" in line
    assert "resume" in line
    # Continued with the new code, the earlier run would have the default.
    of_other_value = load(tmp_path / "work" / "digits.yaml", ["model.depth=2"])
    assert "resume" not in other_run_by_code(run_of(of_other_value), of_other_value)[0]
    of_other_seed = load(tmp_path / "work" / "digits.yaml", ["seed=9"])
    assert other_run_by_code(run_of(of_other_seed), of_other_seed) == []
    assert other_run_by_code(run, experiment) == []


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


# ---- the commands, on a command of the user's own

Stk = Callable[..., str]


@pytest.fixture
def stk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Stk:
    """Runs `stk` beside a script that wants another attempt each time; returns its warnings and errors."""
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(tmp_path / "runs"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    edit(tmp_path, "train.py", _TRAIN.format(75))
    edit(tmp_path, "helper.py", "SAYS = 'first'\n")
    edit(tmp_path, "train.yaml", "name: own\ntask: {kind: command, run: [python3, train.py]}\n")

    def stk(*words: str, code: int | None = 0) -> str:
        """Call the command, which ends with this exit code, or with any; return what it says."""
        capfd.readouterr()
        ended = main([*words])
        said = capfd.readouterr().err
        assert code in (None, ended), said
        return said

    return stk


def test_run_keeps_its_code_until_new_code_is_requested(stk: Stk, tmp_path: Path) -> None:
    stk("run", "train.yaml", code=None)
    (run,) = find_runs(tmp_path / "runs")
    edit(tmp_path, "helper.py", "SAYS = 'second'\n")
    warning = stk("run", "train.yaml", code=None)
    assert all(each in warning for each in ("helper.py", "--new-code", "--fresh"))
    assert (run.work / "said").read_text() == "first"
    (tmp_path / "work" / "train.py").write_text(_TRAIN.format(0))
    stk("run", run.run_id, "--new-code")
    assert (run.work / "said").read_text() == "second"
    (event,) = (each for each in read_events(run) if each.name == NEW_CODE)
    assert event.facts["files"] == ["helper.py", "train.py"]
    edit(tmp_path, "helper.py")
    assert "has finished with other code" in stk("run", "train.yaml", "--new-code")
    stk("report", run.run_id)
    assert "helper.py, train.py, from step 1 on" in (run.report / "report.md").read_text()


def test_a_command_is_not_repeated_with_edited_code(stk: Stk, tmp_path: Path) -> None:
    (tmp_path / "work" / "train.py").write_text(_TRAIN.format(0))
    stk("run", "train.yaml")
    (run,) = find_runs(tmp_path / "runs")
    edit(tmp_path, "train.yaml")
    stk("reproduce", run.run_id, "--output", "repeat.sh")
    edit(tmp_path, "helper.py", "SAYS = 'second'\n")
    assert str(tmp_path / "work" / "helper.py") in stk("reproduce", run.run_id, code=2)
    command = ["env", f"STK_EXPERIMENT_DIR={tmp_path}/repeated", "bash", "repeat.sh", "run"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, (tmp_path / "repeated").exists()) == (2, False)
    assert "helper.py: FAILED" in done.stdout
    stk("reproduce", run.run_id, "--force")


def test_new_code_does_not_replace_files_that_the_run_has_written(stk: Stk, tmp_path: Path) -> None:
    writes = (
        "import pathlib\nfor name in ('model.pt', 'both.pt'): pathlib.Path(name).write_text('of the run')\n"
    )
    work = tmp_path / "work"
    for name in ("model.pt", "both.pt"):
        (work / name).write_text("old")
    (work / "sub").mkdir()
    (work / "sub" / "data").symlink_to(tmp_path)
    (work / "train.py").write_text(writes + "raise SystemExit(1)\n")
    stk("run", "train.yaml", code=None)
    (run,) = find_runs(tmp_path / "runs")
    assert (run.work / "sub").is_symlink()
    edit(tmp_path, "train.py")
    edit(tmp_path, "both.pt", "edited")
    edit(tmp_path, "sub/new.py", "new")
    warning = stk("run", "train.yaml", code=None)
    assert "continues with new code; changed: both.pt, sub/new.py, train.py" in warning
    assert "has written both.pt itself" in warning
    assert "model.pt" not in warning
    assert [(run.work / name).read_text() for name in ("model.pt", "both.pt")] == ["of the run"] * 2
    assert "# edited" in (run.work / "train.py").read_text()
    # No copy goes through a link into the user's folder.
    assert not (run.work / "sub" / "new.py").is_symlink()
    (work / "sub" / "new.py").write_text("later")
    assert (run.work / "sub" / "new.py").read_text() == "new"


def test_plan_in_another_folder_warns_and_the_run_keeps_its_code(
    stk: Stk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work" / "rows.bin").write_bytes(bytes(LARGEST_FILE + 1))
    run = create_run(load(tmp_path / "work" / "train.yaml"), tmp_path / "runs")
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "work", other)
    monkeypatch.chdir(other)
    (other / "train.py").write_text("")
    warning = stk("plan", "train.yaml")
    assert all(each in warning for each in (str(tmp_path / "work"), str(other), "name=", "--new-code"))
    take_new_code(run, load(other / "train.yaml"), asked=False)
    assert (run.user_code / "train.py").read_text() == _TRAIN.format(75)
    # A moved folder is not another folder, but the run has links to files that were there.
    make_work_folder(run, load_resolved(run.config))
    shutil.rmtree(tmp_path / "work")
    warning = stk("plan", "train.yaml")
    assert "name=" not in warning
    assert f"{run.run_id} has links to files in {tmp_path / 'work'}" in warning


@pytest.mark.parametrize(
    "words, overrides",
    [(["submit", "train.yaml"], []), (["sweep", "train.yaml", "params.x=1", "--dry-run"], ["params.x=1"])],
    ids=["submit", "sweep"],
)
def test_submit_and_sweep_name_edited_files(
    stk: Stk, tmp_path: Path, words: list[str], overrides: list[str]
) -> None:
    create_run(load(tmp_path / "work" / "train.yaml", overrides), tmp_path / "runs")
    (tmp_path / "work" / "train.py").write_text(_TRAIN.format(0))
    assert "changed: train.py" in stk(*words, "--cluster", "local", code=None)


@pytest.mark.parametrize("command", ["submit", "resume"])
def test_refused_live_run_is_not_said_to_go_on_with_new_code(
    stk: Stk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    run = create_run(load(tmp_path / "work" / "train.yaml"), tmp_path / "runs")
    edit(tmp_path, "train.py")

    def refuse(run: RunDir, *_: object, **__: object) -> None:
        raise RunBusy(f"{run.run_id} is running")

    monkeypatch.setattr("slurm.submission.submit.refuse_if_live", refuse)
    said = stk(command, "train.yaml" if command == "submit" else run.run_id, "--cluster", "local", code=2)
    assert "is running" in said
    assert "changed: train.py" not in said


def test_plan_of_an_existing_run_names_edited_files(stk: Stk, tmp_path: Path) -> None:
    create_run(load(tmp_path / "work" / "train.yaml"), tmp_path / "runs")
    assert "changed" not in stk("plan", "train.yaml")
    edit(tmp_path, "helper.py")
    assert "changed: helper.py" in stk("plan", "train.yaml")
    with pytest.warns(UserWarning, match=r"changed: helper\.py"):
        api_plan("train.yaml")


def test_ranks_of_a_launcher_refuse_new_code(
    stk: Stk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    for name, value in {**world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    assert "--new-code" in stk("run", "train.yaml", "--new-code", code=2)
    assert not (tmp_path / "runs").exists()


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


def test_run_whose_folder_was_moved_continues_with_its_copy(
    stk: Stk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    (work / "train.py").write_text("raise SystemExit(1)\n")
    stk("run", "train.yaml", code=None)
    (run,) = find_runs(tmp_path / "runs")
    (work / "train.py").rename(work / "other.py")
    assert "train.py" in stk("run", run.run_id, code=ExitCode.WRONG_INPUT)
    (work / "other.py").rename(work / "train.py")
    work.rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path / "moved")
    stk("run", run.run_id, code=None)
    assert len(read_attempts(run)) == 2
