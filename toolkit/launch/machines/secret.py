"""The secret with which the launchers of several machines authenticate each other.

Machine 0 puts it into a file beside the runs while the machines connect. Only the user can read that file.
Machines that share no such folder need a secret from the user (toolkit.distributed.secure.secret).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from toolkit.distributed.secure.secret import derive, given_secret, made_secret, read_secret
from toolkit.errors import UserError

_PURPOSE = "machines"


@contextmanager
def offered_secret(folder: Path, port: int, environ: Mapping[str, str] = os.environ) -> Iterator[bytes]:
    """The secret of machine 0; other machines can read it in the folder for now. Raises UserError."""
    given = given_secret(environ)
    if given is not None:
        yield derive(given, _PURPOSE)
        return
    path = folder / f".{socket.gethostname()}.{port}.machines"
    made = _make_folder(folder)
    try:
        # A killed machine 0 may have left its file behind.
        path.unlink(missing_ok=True)
        yield derive(made_secret(path), _PURPOSE)
    except BaseException:
        path.unlink(missing_ok=True)
        # Remove the folders that were made here, unless they hold runs now. If the machines have connected,
        # another one may be making the run's folder at this moment.
        with suppress(OSError):
            for each in made:
                each.rmdir()
        raise
    finally:
        path.unlink(missing_ok=True)


def _make_folder(folder: Path) -> list[Path]:
    """Make a folder and its parents; return those that were made, innermost first. Raises UserError."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot write {folder}: {error.strerror}. STK_EXPERIMENT_DIR chooses another place."
        ) from None
    return made


def known_secrets(folder: Path, environ: Mapping[str, str] = os.environ) -> list[bytes]:
    """Secrets that machine 0 may know: the user's, or those in the folder, newest first. Raises UserError."""
    given = given_secret(environ)
    if given is not None:
        return [derive(given, _PURPOSE)]
    found = []
    for path in sorted(folder.glob(".*.machines"), key=_age_s):
        # A file of another user, or one that was removed just now, is not of this run.
        with suppress(OSError, UserError):
            found.append(derive(read_secret(path), _PURPOSE))
    return found


def _age_s(path: Path) -> float:
    try:
        return -path.lstat().st_mtime
    except OSError:
        return 0.0
