"""The commands of `stk` beside a user's own command that was edited."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm.api.planning import plan as api_plan
from slurm.cli import main
from tests.toolkit.workloads.custom.edited_code.conftest import edit
from toolkit.config import load, load_resolved
from toolkit.errors import RunBusy
from toolkit.exit_codes import ExitCode
from toolkit.run.attempts.records import read_attempts
from toolkit.run.create_run import create_run
from toolkit.run.events import read_events
from toolkit.run.kept_code.edited_code import NEW_CODE, take_new_code
from toolkit.run.run_dir import RunDir, find_runs
from toolkit.workloads.custom.command.kept_files import LARGEST_FILE, make_work_folder

#: Saves, and exits with a given status; 75 asks for another attempt.
_TRAIN = """
import os, pathlib, sys
import helper
pathlib.Path(os.environ["STK_CHECKPOINT_DIR"], "saved").touch()
pathlib.Path("said").write_text(helper.SAYS)
sys.exit({})
"""

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


@pytest.mark.parametrize("option", ["--new-code", "--fresh"])
def test_ranks_of_a_launcher_refuse_new_code_and_a_new_folder(
    stk: Stk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    world = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    for name, value in {**world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    assert option in stk("run", "train.yaml", option, code=2)
    assert not (tmp_path / "runs").exists()


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
