"""Whether the files that are executed from a run's folder can be trusted: its code, config and jobs.

Everything that executes files of a run's folder checks here first; reading a run needs no check. As with
git's `safe.directory`, the owner matters. Write permissions matter too: the name of a run is predictable, so
another member of a group can create a run's folder before its owner does.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from toolkit.errors import UntrustedFolder, UserError
from toolkit.run.run_dir import RunDir

#: Folders whose contents are executed even if other users may write them, separated by colons; `*` for all.
VARIABLE = "STK_TRUSTED_FOLDERS"
_OTHERS_ENTER = 0o011
#: Attribute with a Linux access list; the mode's group bits then limit all users that the list names.
_ACCESS_LIST = "system.posix_acl_access"
#: Whether this process, and no other, trusts each folder that it checks.
_trusts_what_it_checks = False


def trust(named: Sequence[str]) -> None:
    """Trust the folders of --trust-folder and everything below them, here and in child processes.

    An empty name means the folders that this process checks: those of the command's runs.
    Child processes and jobs get the names of these folders, and trust no other folder.

    Raises UserError for a name that is not a folder.
    """
    global _trusts_what_it_checks
    _trusts_what_it_checks = "" in named
    for name in filter(None, named):
        if name != "*" and not os.path.isdir(name):
            raise UserError(f"--trust-folder={name}: there is no such folder")
        _add_to_environment(name if name == "*" else os.path.realpath(name))


def _add_to_environment(folder: str) -> None:
    """Add a trusted folder to the environment variable. Raises UserError if its path has a colon."""
    if os.pathsep in folder:
        raise UserError(f"{folder} cannot be trusted by its name: colons separate folders in {VARIABLE}")
    named = [*filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)), folder]
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys(named))


def check_run(run: RunDir) -> None:
    """Raise UntrustedFolder if another user owns or may write the files of a run that are executed."""
    check_folder(run.path, run.config, run.job, run.code, run.submitit)


def check_folder(folder: Path, *executed: Path) -> None:
    """Raise UntrustedFolder if another user owns or may write a folder, or these files and folders in it."""
    if _is_trusted(folder):
        return
    for path in (str(folder), *_all_of(executed)):
        if why := _fault(path):
            if _trusts_what_it_checks:
                return _add_to_environment(os.path.realpath(folder))
            raise UntrustedFolder(
                f"{path} {why}, and it would be executed as you. If you know its contents, give "
                f"--trust-folder, or set {VARIABLE}={folder}"
            )


def python_path(run: RunDir, inherited: str | None) -> str:
    """Return PYTHONPATH with a run's own code before the inherited one.

    Raises UntrustedFolder, and UserError if the folder's path has a colon.
    """
    check_run(run)
    refuse_colon(run.path)
    return os.pathsep.join(filter(None, [str(run.code), inherited]))


def refuse_colon(folder: Path) -> None:
    """Raise UserError if the path of the folder of a run or a sweep has a colon."""
    if os.pathsep in str(folder):
        raise UserError(
            f"the path {str(folder)!r} has a {os.pathsep!r}, which separates folders in PYTHONPATH, so the "
            "run's own code would not be found. Move the folder to a place without one; for a new run, "
            "STK_EXPERIMENT_DIR chooses another place."
        )


def _is_trusted(folder: Path) -> bool:
    named = os.environ.get(VARIABLE, "").split(os.pathsep)
    trusted = [os.path.realpath(each) for each in named if each]
    return "*" in named or any(folder.resolve().is_relative_to(each) for each in trusted)


def _all_of(paths: tuple[Path, ...]) -> Iterator[str]:
    """Iterate over the existing paths and everything in the folders among them."""
    for path in paths:
        if os.path.lexists(path):
            yield str(path)
        for folder, folders, files in os.walk(path):
            if not os.stat(folder).st_mode & _OTHERS_ENTER:
                # Only the owner can enter: the modes inside do not matter.
                folders.clear()
                continue
            yield from (os.path.join(folder, name) for name in (*folders, *files))


def _fault(path: str) -> str:
    """Say why a path cannot be trusted: its owner and mode; empty if it can."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return "" if not os.path.islink(path) else "is a broken link"
    except OSError as error:
        return f"cannot be checked ({error.strerror})"
    owned, mode = f"belongs to user {user_name(found.st_uid)}", stat.filemode(found.st_mode)
    if found.st_uid not in (os.geteuid(), 0):
        return f"{owned} (mode {mode})"
    if found.st_mode & stat.S_IWOTH:
        return f"{owned}, and everybody may write it (mode {mode})"
    is_own_group = found.st_gid == _private_group(os.geteuid()) and not _has_access_list(path)
    if found.st_mode & stat.S_IWGRP and not is_own_group:
        return f"{owned}, and the group {_group(found.st_gid)} may write it (mode {mode})"
    return ""


@cache
def _private_group(uid: int) -> int | None:
    """The primary group of a user if it is private; None if it has other members.

    It is recognized by the user's name or number, as systems create one group per user: not every user
    directory can list the users of a primary group.
    """
    try:
        user = pwd.getpwuid(uid)
        group = grp.getgrgid(user.pw_gid)
    except KeyError:
        return None
    is_own = group.gr_name == user.pw_name or group.gr_gid == user.pw_uid
    return group.gr_gid if is_own and set(group.gr_mem) <= {user.pw_name} else None


def _has_access_list(path: str) -> bool:
    try:
        return bool(os.getxattr(path, _ACCESS_LIST))
    except OSError:
        # No list is set, or the file system has none.
        return False


def user_name(number: int) -> str:
    """Return a user's name; the number if it has none."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
