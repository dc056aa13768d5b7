"""The user's code in a run: code is copied, other files are linked."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from slurm.submission.checks.early_checks import check_code
from toolkit.config import check
from toolkit.errors import UserError
from toolkit.run.create_run import run_of
from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.command.kept_files import (
    LARGEST_FILE,
    import_path,
    kept_files,
    make_work_folder,
    shared_outputs,
)

#: More than a file of code may have.
LARGE = bytes(LARGEST_FILE + 1)


def add(folder: Path, *names: str, content: bytes | None = None) -> None:
    """Add files, each with its own name as its content, unless another is given."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content or name.encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which somebody works."""
    made = tmp_path / "it's mine"
    add(made, "train.py", "models/net.py", "data/rows.csv", ".hidden/key")
    add(made, ".venv/pyvenv.cfg", ".venv/x.py", "env/conda-meta/history", "env/x.py")
    add(made / "of before" / "train-1", "attempts.jsonl", "config.yaml", "logs/a.log")
    add(made, "data/large.bin", content=LARGE)
    return made


def experiment_of(folder: Path, *paths: Path, words: tuple[str, ...] = ()) -> SimpleNamespace:
    """The experiment of a command in a folder, with code at these paths; it reads base.pt."""
    task = SimpleNamespace(folder=str(folder), run=words)
    code, inputs = tuple(map(str, paths)), (str(folder / "base.pt"),)
    return SimpleNamespace(task=task, code=code, inputs=inputs)


def keep(
    run: RunDir, folder: Path, *paths: Path, words: tuple[str, ...] = ("python", "train.py")
) -> SimpleNamespace:
    """Keep code with a run; return its experiment."""
    experiment = experiment_of(folder, *paths, words=words)
    for file, place in kept_files(experiment):
        (run.code / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, run.code / place)
    return experiment


def files(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


def test_scripts_not_yet_tracked_by_git_are_code_unless_ignored_or_hidden(folder: Path, run: RunDir) -> None:
    """A link to such a file would give the job every later edit of it."""
    git(folder, "init", "-q")
    add(folder, ".gitignore", content=b"ignored.py")
    git(folder, "add", "train.py", "models/net.py", "data/rows.csv")
    add(folder, "new.py", "run.sh", "new/__init__.py", "new/parts/net.py", "models/new.py", "new/notes.txt")
    # A program may copy its own code to its output, and a script may lie in a large folder of data.
    add(folder, "notes.txt", "outputs/a/code/train.py", "rows/download.sh", "experiments/b-2/code/x.py")
    add(folder, "ignored.py", ".key.py", "experiments/a-1/attempts.jsonl", "experiments/a-1/config.yaml")
    add(folder, "experiments/a-1/code/x.py")
    add(folder, "large.py", content=LARGE)
    (folder / "link.py").symlink_to("train.py")
    keep(run, folder, folder)
    found = {"train.py", "models/net.py", "data/rows.csv", "new.py", "run.sh", "models/new.py"}
    found |= {"new/__init__.py", "new/parts/net.py"}
    assert files(run.user_code) == found


def test_scripts_beside_the_script_in_a_new_folder_are_code(folder: Path, run: RunDir) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "train.py")
    add(folder, "new/go.py", "new/net.py", "new/rows.txt")
    keep(run, folder, folder, words=("python", "new/go.py"))
    assert files(run.user_code) == {"train.py", "new/go.py", "new/net.py"}


@pytest.mark.parametrize(
    "words", ["python train.py", "python -m train", "torchrun --nproc-per-node 2 -m train --lr 1"]
)
def test_script_or_module_not_yet_tracked_by_git_is_code(folder: Path, run: RunDir, words: str) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "models")
    keep(run, folder, folder, words=tuple(words.split()))
    assert files(run.user_code) == {"train.py", "models/net.py"}


def test_copied_packages_are_imported_before_the_edited_ones(
    folder: Path, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By PYTHONPATH, or after `pip install -e` of a folder whose packages are in src/."""
    add(folder, "lib/mine.py", "project/src/ours/__init__.py")
    monkeypatch.setattr(
        "toolkit.workloads.custom.command.kept_files.editable_folders",
        lambda: [folder / "project", Path("/elsewhere")],
    )
    make_work_folder(run, keep(run, folder, folder))
    given = os.pathsep.join(["/site", str(folder / "lib")])
    found = import_path(run, folder, {"PYTHONPATH": given}).split(os.pathsep)
    copies = [str(run.work / name) for name in ("lib", "project", "project/src")]
    assert found == [*copies, "/site", str(folder / "lib")]
    assert import_path(run, folder / "data", {}) == ""
    assert import_path(run, folder / "data", {"PYTHONPATH": ":/site"}) == f"{run.work}:/site"


@pytest.mark.parametrize(
    "word", [".", "", "/train", "a b", pytest.param(f"{'echo a; ' * 100}python train.py", id="a long one")]
)
def test_small_files_are_copied_but_not_hidden_or_large_files_or_runs_if_no_script_is_named(
    folder: Path, run: RunDir, word: str
) -> None:
    keep(run, folder, folder, words=("pytest", "-m", word))
    assert files(run.user_code) == {"train.py", "models/net.py", "data/rows.csv"}


@pytest.mark.parametrize("umask, folders", [(0o002, {".", "models"}), (0o022, set())])
def test_others_cannot_write_where_python_compiles_the_copies(
    folder: Path, run: RunDir, umask: int, folders: set[str]
) -> None:
    experiment = keep(run, folder, folder)
    before = os.umask(umask)
    try:
        make_work_folder(run, experiment)
    finally:
        os.umask(before)
    compiled = [*run.work.rglob("__pycache__")]
    assert {path.parent.relative_to(run.work).as_posix() for path in compiled} == folders
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o755 for path in compiled)


def test_unreadable_folder_is_linked(folder: Path, run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests run as root, to whom nothing is closed."""
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "data" and may(path, mode))
    experiment = keep(run, folder, folder)
    assert files(run.user_code) == {"train.py", "models/net.py"}
    make_work_folder(run, experiment)
    assert (run.work / "data").is_symlink()


def test_work_folder_has_all_files_without_later_edits(folder: Path, run: RunDir) -> None:
    experiment = keep(run, folder, folder / "train.py", folder / "models")
    (folder / "train.py").write_text("edited")
    make_work_folder(run, experiment)
    assert (run.work / "train.py").read_text() == "train.py"
    assert (run.work / "data").resolve() == folder / "data"
    assert (run.work / ".venv" / "x.py").read_text() == ".venv/x.py"
    assert files(run.work) == {"train.py", "models/net.py"}


def test_files_added_later_are_linked_at_the_next_start_unless_they_are_code(
    folder: Path, run: RunDir
) -> None:
    experiment = keep(run, folder, folder)
    make_work_folder(run, experiment)
    (run.work / "models" / "net.py").unlink()
    add(folder, "more.bin", "data/more.bin", content=LARGE)
    add(folder, "more.py", "data/more.py", "new/more.py")
    make_work_folder(run, experiment)
    found = {str(path.relative_to(run.work)) for path in run.work.rglob("*more*")}
    assert found == {"more.bin", "data/more.bin"}
    assert (run.work / "data/more.bin").resolve() == folder / "data/more.bin"
    # Nothing that is edited later comes in place of code that the program has removed.
    assert not (run.work / "models" / "net.py").exists()


def test_later_output_in_the_user_folder_is_not_linked_into_the_run(folder: Path, run: RunDir) -> None:
    """For example output of a trial in the folder after the run was submitted."""
    experiment = keep(run, folder, folder)
    make_work_folder(run, experiment)
    (run.work / "states").mkdir()
    add(folder, "base.pt", "last.pt", "states/7.bin", "checkpoints/7.bin", content=LARGE)
    make_work_folder(run, experiment)
    assert (run.work / "base.pt").exists()
    assert not (run.work / "last.pt").exists()
    assert not (run.work / "checkpoints").exists()
    assert files(run.work / "states") == set()


def test_outputs_shared_by_all_runs_are_named_in_a_warning(folder: Path) -> None:
    add(folder, "out/.gitkeep", "logs/small.txt", "src/out.py")
    add(folder, "last.pt", "base.pt", "results/large", content=LARGE)
    (warning,) = shared_outputs(experiment_of(folder, folder))
    assert "last.pt, out, results." in warning.problem


@pytest.mark.parametrize(
    "name, is_output",
    [
        ("model.keras", True),
        ("best_model.pkl", True),
        ("results.csv", True),
        ("runs/old/events", True),
        ("rows.h5", False),
        ("train.bin", False),
        ("artifacts/train-1/log", False),
    ],
)
def test_names_of_output_are_told_from_those_of_data_and_of_the_runs(
    name: str, is_output: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(tmp_path / "artifacts"))
    add(tmp_path, "train.py")
    add(tmp_path, name, content=LARGE)
    assert bool([*shared_outputs(experiment_of(tmp_path, tmp_path / "train.py"))]) is is_output


def test_empty_folder_is_created_and_not_linked(folder: Path, run: RunDir) -> None:
    (folder / "out").mkdir()
    make_work_folder(run, keep(run, folder, folder))
    assert (run.work / "out").is_dir()
    assert not (run.work / "out").is_symlink()


@pytest.mark.parametrize("name", ["missing.py", ".."])
def test_code_that_is_missing_or_outside_the_folder_is_refused(folder: Path, run: RunDir, name: str) -> None:
    path = (folder / name).resolve()
    with pytest.raises(UserError, match=f"{path}"):
        keep(run, folder, path)
    assert not run.user_code.exists()


def test_too_many_files_are_refused_before_anything_is_written(
    folder: Path, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.workloads.custom.command.kept_files.MOST_FILES", 2)
    with pytest.raises(UserError, match="more than 2 files"):
        keep(run, folder, folder)
    assert not run.user_code.exists()


def test_a_plan_refuses_too_many_files_unless_the_run_has_its_code(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.workloads.custom.command.kept_files.MOST_FILES", 2)
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(tmp_path / "artifacts"))
    monkeypatch.chdir(folder)
    experiment = check({"name": "train", "task": {"kind": "command", "run": ["python", "train.py"]}})
    with pytest.raises(UserError, match="more than 2 files"):
        check_code(experiment)
    run_of(experiment).code.mkdir(parents=True)
    check_code(experiment)
