"""The code that a run keeps: the core's packages, and those of the workloads that it uses."""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import uuid
from collections.abc import Container, Iterable, Iterator
from itertools import groupby
from pathlib import Path

from toolkit.config.schema import Experiment
from toolkit.errors import UserError
from toolkit.files import fsync_path, link_or_copy
from toolkit.registry import GROUP, installed, kept_files
from toolkit.run.run_dir import RunDir
from toolkit.system.distributions import ENTRY_POINTS, Distribution, distribution, entry_points

#: The core's packages, and the public API, a separate module.
CORE = ("toolkit", "slurm", "stk.py")
_DISTRIBUTION = "slurm-toolkit"

_COMPILED = shutil.ignore_patterns("__pycache__")
#: Write permissions that everybody but the owner loses.
_OTHERS_WRITE = 0o022
_SOURCE = Path(__file__).resolve().parents[3]
_WORKLOADS = _SOURCE / "toolkit" / "workloads"


def keep_code(run: RunDir, experiment: Experiment, shared: Path | None) -> None:
    """Copy the code once: a run continues with the code that it started with.

    shared   a copy of the code that many runs share: the run gets a link to it
    """
    is_link = run.code.is_symlink()
    if run.code.exists() and (shared is not None or not is_link):
        return
    if shared is not None and not is_link:
        run.code.symlink_to(os.path.relpath(shared, run.path))
        return
    # Not the process id, because two hosts may use the same one.
    temporary = run.path / f".code.{uuid.uuid4().hex}.tmp"
    try:
        if run.code.exists():
            shutil.copytree(run.code, temporary, copy_function=link_or_copy, ignore=_COMPILED)
            restrict_writes(temporary)
        else:
            copy_code(temporary, [experiment.task.kind], kept_files(experiment))
        _rename_unless_present(temporary, run.code, is_link=is_link)
    finally:
        # Nothing is left of it after the renaming.
        shutil.rmtree(temporary, ignore_errors=True)
    fsync_path(run.path)


def _rename_unless_present(folder: Path, target: Path, *, is_link: bool) -> None:
    """Rename a folder, also over a link, unless another process has made the target meanwhile."""
    try:
        if is_link:
            # If another process was first, this is a folder now, and unlink fails.
            target.unlink()
        os.rename(folder, target)
    except OSError:
        if not target.exists():
            raise


def copy_code(target: Path, kinds: Iterable[str], files: Iterable[tuple[Path, str]] = ()) -> None:
    """Copy the core, and the workloads of these task kinds, into a new folder.

    files   further files, each with its path in the folder
    Raises UserError if a package of a workload cannot be found.
    """
    kinds = list(kinds)
    for file, place in code_files(kinds, files):
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        # With the time of today: a purge of old files would delete a copy that is as old as its source.
        shutil.copy(file, target / place)
    used = {each.name: each for each in map(installed, kinds)}
    kept = {each.distribution.folder: each.distribution for each in used.values() if each.workload.packages}
    ours = distribution(_DISTRIBUTION)
    for each in {ours.folder: ours, **kept}.values():
        _copy_metadata(each, target, used)
    restrict_writes(target)


class LostCode(UserError):
    """A run's code lacks files."""


def check_kept(run: RunDir) -> None:
    """Raise LostCode if a package of the run's code is gone or empty: Python would import today's."""
    folders = [each for each in run.code.glob("*/") if each.name != "__pycache__"]
    lost = [f"{each} is empty" for each in folders if next(_below(each, ""), None) is None]
    firsts = [run.code / name / "__init__.py" for name in ("slurm", "toolkit")]
    lost += [f"{each} is gone" for each in firsts if not each.is_file()]
    if lost:
        raise LostCode(
            f"the stored code of {run.run_id} has lost files, as after a purge of old files: {lost[0]}. "
            "Restore it, or use today's code: continue with --new-code, or, for a finished run, remove code/"
        )


def code_files(
    kinds: Iterable[str], files: Iterable[tuple[Path, str]] = ()
) -> Iterator[tuple[Path | str, str]]:
    """Yield the files of the core, and of the workloads of these task kinds, each with its path in a copy.

    files   further files, yielded first: iteration fails early if they are too many or one is missing
    Raises UserError if a package of a workload cannot be found.
    """
    yield from files
    for name in CORE:
        yield from _below(_SOURCE / name, name)
    for found in {each.name: each for each in map(installed, kinds)}.values():
        for package in found.workload.packages:
            spec = importlib.util.find_spec(package)
            if spec is None or spec.origin is None:
                raise UserError(
                    f"the package {package}, which a workload names, cannot be found: is it installed?"
                )
            source = Path(spec.origin)
            is_folder = source.name == "__init__.py"
            place = package.replace(".", "/") if is_folder else source.name
            yield from _below(source.parent if is_folder else source, place)


def _below(source: Path, place: str) -> Iterator[tuple[Path | str, str]]:
    """Yield a file, or all files below a folder except compiled ones and the core's workloads."""
    if source.is_file():
        yield source, place
    for around, folders, names in os.walk(source):
        folders[:] = [] if Path(around) == _WORKLOADS else sorted(set(folders) - {"__pycache__"})
        inside = os.path.normpath(os.path.join(place, os.path.relpath(around, source)))
        yield from ((os.path.join(around, name), os.path.join(inside, name)) for name in sorted(names))


def _copy_metadata(of: Distribution, target: Path, workloads: Container[str]) -> None:
    """Keep the entry points: a later installation may name modules that this code does not have.

    Of the workloads, only the given names are kept.
    """
    name, version = of.field("Name"), of.field("Version")
    folder = target / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    # Written, not copied: an editable installation may keep it in a file with another name.
    facts = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (folder / "METADATA").write_text(facts, encoding="utf-8")
    kept = (
        each
        for each in entry_points()
        if each.distribution == of and (each.group != GROUP or each.name in workloads)
    )
    lines: list[str] = []
    for group, points in groupby(kept, key=lambda point: point.group):
        lines += [f"[{group}]", *(f"{each.name} = {each.code}" for each in points)]
    (folder / ENTRY_POINTS).write_text("\n".join(lines) + "\n", encoding="utf-8")


def restrict_writes(code: Path) -> None:
    """Keep other users from writing the code, even if the umask or the modes of its source allow it."""
    for folder, _, files in os.walk(code):
        # A copy of a read-only folder is read-only too.
        os.chmod(folder, os.stat(folder).st_mode & 0o7777 | stat.S_IWUSR)
        if any(name.endswith(".py") for name in files):
            # Python would create it with the permissions of the umask, and executes its files.
            os.makedirs(os.path.join(folder, "__pycache__"), mode=0o755, exist_ok=True)
        for path in (folder, *(os.path.join(folder, name) for name in files)):
            mode = os.stat(path).st_mode
            if mode & _OTHERS_WRITE:
                os.chmod(path, mode & ~_OTHERS_WRITE & 0o7777)
