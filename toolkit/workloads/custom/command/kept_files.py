"""The user's code in a run, and the folder in which the user's program runs.

A run keeps copies of the code files. The program runs in a folder of the run that holds these copies, and
links to everything else in the user's folder. So it finds its data under the usual names, and later edits of
the code do not affect it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from toolkit.errors import UserError
from toolkit.run.kept_code.code_snapshot import restrict_writes
from toolkit.run.run_dir import RunDir, experiment_dir, user_code_in
from toolkit.system.distributions import editable_folders
from toolkit.system.output.few import few
from toolkit.workload import Violation
from toolkit.workloads.custom.command.words import SCRIPTS, inside

#: In bytes. A larger file does not count as code, and is linked.
LARGEST_FILE = 1 << 20
#: Limits for all files together.
MOST_FILES, MOST_BYTES = 5_000, 100 << 20

#: Entries that a message names.
_NAMED = 5
#: Neither copied nor linked.
_IGNORED = frozenset({".git", "__pycache__"})
#: A folder with one of these is an environment of Python or conda.
_ENVIRONMENTS = ("pyvenv.cfg", "conda-meta")
#: Usual names of the output of programs.
_OUTPUT = re.compile(
    r"(out(puts?)?|checkpoints?|ckpts?|results?|saved?|logs?|weights|wandb|\w+_logs|mlruns|tensorboard)"
    r"|.*\.(pt|pth|ckpt|safetensors|log|keras)"
)
#: Names of output, or of data that a command reads.
_MAYBE_OUTPUT = re.compile(
    r"runs|multirun|artifacts|trainer_output|(results?|metrics)\.(csv|jsonl?)|.*\.onnx"
    r"|(.*[_.-])?(model|weights|best)([_.-].*)?\.(h5|hdf5|pkl|pickle|joblib|npz|msgpack|bin)"
)


def kept_files(experiment: Any) -> Iterator[tuple[Path, str]]:
    """Yield the code files, each with its place in the code of the run.

    Raises UserError if code is missing, is outside of the folder of the command, or exceeds the limits.
    """
    folder = Path(experiment.task.folder)
    files: set[Path] = set()
    places = [_within(folder, Path(name)) for name in experiment.code]
    for found in (each for place in places for each in _code_in(folder, place)):
        files.add(found)
        if len(files) > MOST_FILES:
            break
    if experiment.code:
        # The script counts as code even if git ignores it, and in a new folder also the scripts beside it.
        scripts = {path for path in _scripts(experiment.task.run) if os.path.isfile(folder / path)}
        new = [path for path in scripts - files if path.parent != Path() and Path() in places]
        files |= scripts.union(*(_scripts_beside(folder, path) for path in new))
    _check_limits(folder, sorted(files))
    for file in sorted(files):
        yield folder / file, str(user_code_in(Path()) / file)


def shared_outputs(experiment: Any) -> Iterator[Violation]:
    """Find linked files that look like output of earlier work: all runs would write into the same ones."""
    folder = Path(experiment.task.folder)
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    usual = (_OUTPUT, _MAYBE_OUTPUT)
    found = [path for path in there if any(each.fullmatch(path.name.lower()) for each in usual)]
    left_out = {*experiment.inputs, str(experiment_dir())}
    found = [path for path in found if not {str(path), str(path.resolve())} & left_out]
    try:
        kept = {file for file, _ in kept_files(experiment)} if found else set()
    except UserError:
        # The error is raised again when the code is copied.
        return
    if names := [path.name for path in found if any(file not in kept for file in _all_files(path))]:
        problem = (
            f"not copied but linked from {folder}: {few(names, _NAMED)}. All runs that write there share it"
        )
        hint = (
            "write to STK_CHECKPOINT_DIR or ${run.dir}, one per run; list data that is only read in `inputs`"
        )
        yield Violation(key=("task", "folder"), problem=problem, hint=hint)


def make_work_folder(run: RunDir, experiment: Any) -> None:
    """Make the folder in which the command runs, or add links to the user's new files. One rank calls it."""
    folder = Path(experiment.task.folder)
    if run.work.exists():
        _link_new(run, experiment, folder)
        return
    new = run.work.with_name(f".{run.work.name}.tmp")
    shutil.rmtree(new, ignore_errors=True)
    if run.user_code.exists():
        shutil.copytree(run.user_code, new, ignore=shutil.ignore_patterns("__pycache__"))
        if _others_may_write():
            restrict_writes(new)
    else:
        # The run has no code files.
        new.mkdir()
    for around, _, _ in os.walk(new):
        _link_others(folder, new, Path(around).relative_to(new))
    new.rename(run.work)


def _others_may_write() -> bool:
    """Whether the umask lets other users write what Python compiles beside the copies."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask & 0o022 != 0o022


def import_path(run: RunDir, folder: Path, environ: Mapping[str, str]) -> str:
    """Return PYTHONPATH with the folders of the user's code replaced by their copies in the work folder.

    Also those of packages that are installed from the user's folder (`pip install -e .`): the copies come
    first, so that later edits do not affect the run.
    """
    entries = environ["PYTHONPATH"].split(os.pathsep) if environ.get("PYTHONPATH") else []
    # An empty entry means the working directory.
    given = [entry or str(run.work) for entry in entries]
    copies = [run.work / name for entry in given if (name := inside(folder, Path(entry))) is not None]
    installed = [name for entry in editable_folders() if (name := inside(folder, entry)) is not None]
    copies += [run.work / name / source for name in installed for source in ("", "src")]
    found = [str(copy) for copy in dict.fromkeys(copies) if copy.is_dir()]
    return os.pathsep.join([*found, *given])


def _link_new(run: RunDir, experiment: Any, folder: Path) -> None:
    """Link new files of the user's folder, except code, which an edited run copies, and output."""
    try:
        code = {Path(place).relative_to(user_code_in(Path())) for _, place in kept_files(experiment)}
    except UserError:
        return
    copied = {file.relative_to(run.user_code) for file in run.user_code.rglob("*")}
    taken = {each for name in code | copied for each in (name, *name.parents)}

    def is_skipped(name: Path) -> bool:
        is_output = _OUTPUT.fullmatch(name.name.lower()) and str(folder / name) not in experiment.inputs
        return name in taken or bool(is_output)

    # Nothing is linked into folders that the command itself has made.
    for around in {Path(), *(each for name in copied for each in name.parents)}:
        _link_others(folder, run.work, around, is_skipped)


def _scripts(words: Sequence[str]) -> Iterator[Path]:
    """Yield the paths, relative to the working folder, that words may name as scripts, or as `-m module`."""
    for before, word in pairwise(["", *words]):
        if before == "-m" and all(map(str.isidentifier, names := word.split("."))):
            module = Path(*names)
            yield from (module.with_name(f"{module.name}.py"), module / "__init__.py", module / "__main__.py")
        path = Path(word)
        if path.suffix in SCRIPTS and not path.is_absolute() and ".." not in path.parts:
            yield path


def _scripts_beside(folder: Path, script: Path) -> Iterator[Path]:
    for each in (folder / script.parent).iterdir():
        if _is_script(each) and _is_small_file(each):
            yield each.relative_to(folder)


def _is_script(path: Path) -> bool:
    return path.suffix in SCRIPTS and not path.name.startswith(".")


def _within(folder: Path, path: Path) -> Path:
    """Return a path relative to the folder. Raises UserError if it is missing or outside of the folder."""
    if not path.exists():
        raise UserError(f"code: there is no {path}")
    if (name := inside(folder, path)) is None:
        raise UserError(
            f"code: {path} is outside of {folder}, the folder of the command. Start in a folder that "
            "contains both, or leave the path out: then the code is used in place"
        )
    return name


def _code_in(folder: Path, path: Path) -> Iterator[Path]:
    """Yield the code files of a path: those of `_tracked`, else all small ones; never links."""
    whole = folder / path
    if whole.is_file():
        yield path
        return
    tracked = _tracked(whole)
    for each in _visible_files(whole) if tracked is None else tracked:
        if _is_small_file(whole / each):
            yield path / each


def _is_small_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST_FILE


def _tracked(folder: Path) -> list[Path] | None:
    """Files that git tracks, and unignored scripts beside them and in packages; None if it tracks none."""
    tracked = _git_files(folder, "--recurse-submodules")
    # Of a folder without tracked files git names only the folder: it does not search the runs in it.
    others = _git_files(folder, "--others", "--exclude-standard", "--directory") if tracked else []
    return [*tracked, *(file for each in others for file in _scripts_at(folder, each))] or None


def _git_files(folder: Path, *options: str) -> list[Path]:
    command = ["git", "-C", str(folder), "ls-files", "-z", *options]
    try:
        found = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [Path(os.fsdecode(name)) for name in found.split(b"\0") if name]


def _scripts_at(folder: Path, path: Path) -> Iterator[Path]:
    """The script at a path relative to the folder, or all visible ones of a package.

    Other folders may hold data, output with copies of scripts, or another project.
    """
    whole = folder / path
    is_package = (whole / "__init__.py").is_file() and not whole.is_symlink() and _may_be_code(whole)
    yield from filter(_is_script, (path / each for each in _visible_files(whole)) if is_package else [path])


def _visible_files(folder: Path) -> Iterator[Path]:
    """All files below a folder, except hidden files and those of virtual environments and runs."""
    for around, folders, files in os.walk(folder):
        inside = Path(around)
        folders[:] = [name for name in folders if _may_be_code(inside / name)]
        yield from ((inside / name).relative_to(folder) for name in files if not name.startswith("."))


def _may_be_code(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _IGNORED or not _is_open(folder):
        return False
    run = RunDir(folder)
    is_run = run.attempts.exists() and run.config.exists()
    is_environment = any((folder / name).exists() for name in _ENVIRONMENTS)
    return folder != experiment_dir() and not is_run and not is_environment


def _is_open(folder: Path | os.DirEntry[str]) -> bool:
    """Whether this user may read a folder: other members of a project may have closed theirs."""
    return os.access(folder, os.R_OK | os.X_OK)


def _check_limits(folder: Path, files: Sequence[Path]) -> None:
    size = sum((folder / file).stat().st_size for file in files)
    if len(files) > MOST_FILES or size > MOST_BYTES:
        found = f"more than {MOST_FILES:,} files" if len(files) > MOST_FILES else f"{-(-size // 2**20)} MB"
        raise UserError(
            f"code: {found} in {folder} would be copied for this run, and at most {MOST_FILES:,} files with "
            f"{MOST_BYTES >> 20} MB in total can be. Name those that are code, such as "
            "code=[train.py,models]; or start in a folder that holds little else"
        )


def _link_others(
    folder: Path, work: Path, around: Path, is_skipped: Callable[[Path], bool] = lambda name: False
) -> None:
    """Link the entries of a user's folder that were not copied.

    around    that folder, relative to `folder` and `work`
    is_skipped   whether an entry is skipped, by its path relative to both
    """
    if not ((folder / around).is_dir() and (work / around).is_dir()):
        return
    for entry in os.scandir(folder / around):
        new = work / around / entry.name
        if entry.name in _IGNORED or is_skipped(around / entry.name) or os.path.lexists(new):
            continue
        if entry.is_dir() and _is_open(entry) and not any(os.scandir(entry)):
            # An empty folder is probably meant for output.
            new.mkdir()
        else:
            new.symlink_to(entry.path)


def _all_files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
    for around, _, names in os.walk(path):
        yield from (Path(around, name) for name in names)
