"""The secret of an attempt: all its processes know it, and no other user of the machines can read it.

It is in a file that only its owner may open (0600): in the run's folder, made by the first process that
needs it, or in a file that the user names, for machines that share no folder.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from toolkit.errors import UserError
from toolkit.files import create_once

#: Environment variable with the file of a secret, for machines that share no folder.
SECRET_FILE = "STK_SECRET_FILE"

#: How to provide a secret, for messages.
HOW_TO_GIVE = (
    "Make a secret once, `(umask 077; head -c 32 /dev/urandom | base64 > ~/.stk-secret)`, copy that file to "
    f"every machine with mode 600, and set {SECRET_FILE}=~/.stk-secret on each of them"
)

_BYTES = 32
_SHORTEST, _LONGEST = 16, 4096
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def made_secret(path: Path) -> bytes:
    """Return the secret in a file, which is made if it is missing. Raises OSError, UserError."""
    create_once(path, secrets.token_hex(_BYTES), mode=stat.S_IRUSR | stat.S_IWUSR)
    return read_secret(path)


def shared_secret(path: Path, purpose: str, environ: Mapping[str, str] = os.environ) -> bytes:
    """Return the secret for one purpose, from the user's or from the file at path, made if missing.

    Raises UserError if another user may read or has written the file.
    """
    given = given_secret(environ)
    if given is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        given = made_secret(path)
    return derive(given, purpose)


def given_secret(environ: Mapping[str, str] = os.environ) -> bytes | None:
    """Return the secret in the file that the user names; None if the user names none. Raises UserError."""
    name = environ.get(SECRET_FILE)
    if not name:
        return None
    try:
        return read_secret(Path(name).expanduser())
    except OSError as error:
        raise UserError(
            f"{SECRET_FILE} names {name}, which cannot be read: {error.strerror}. {HOW_TO_GIVE}."
        ) from None


def read_secret(path: Path) -> bytes:
    """Read a secret. Raises OSError, and UserError if another user owns the file or may open it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        fault = _fault(os.fstat(descriptor))
        content = b"" if fault else stream.read(_LONGEST).strip()
    if not fault and len(content) < _SHORTEST:
        fault = f"holds {len(content)} bytes, expected at least {_SHORTEST}"
    if fault:
        raise UserError(
            f"the secret in {path} is not safe: the file {fault}. It must be an ordinary file of this user "
            f"with mode 600; remove it if you did not make it. {SECRET_FILE} names another file."
        )
    return content


def _fault(found: os.stat_result) -> str:
    if not stat.S_ISREG(found.st_mode):
        return "is not an ordinary file"
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}, not to {os.geteuid()}"
    if found.st_mode & _OTHERS:
        return f"has mode {stat.S_IMODE(found.st_mode):o}, so other users may open it"
    return ""


def derive(secret: bytes, purpose: str) -> bytes:
    """Return a secret for one purpose, from which the original cannot be computed."""
    return hmac.digest(secret, b"stk|" + purpose.encode(), hashlib.sha256)
