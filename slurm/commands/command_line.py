"""`stk run -- COMMAND`: an experiment from a command line instead of a file."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slurm.commands.common import TAKE_WORDS, warn
from toolkit.errors import UserError


def with_file(words: Sequence[str]) -> list[str]:
    """Return the words of `stk`; a command after `--` is replaced by the name of a virtual file.

    Only this process can read the file; it is not on disk. Raises UserError if nothing follows `--`.
    """
    if "--" not in words or words[0] not in TAKE_WORDS:
        return list(words)
    name, place = words[0], list(words).index("--")
    command = words[place + 1 :]
    if not command:
        raise UserError(f"there is no command after --, as in: {TAKE_WORDS[name]}")
    if _has_input():
        warn(["the command does not get this standard input: let it read a file"])
    return [name, str(file_of_command(command, is_typed=True)), *words[1:place]]


def _has_input() -> bool:
    """Whether a pipe with unread data is the standard input of this process.

    A file may be that of a shell's loop, which reads it line by line.
    """
    try:
        if not stat.S_ISFIFO(os.fstat(0).st_mode):
            return False
        return int.from_bytes(fcntl.ioctl(0, termios.FIONREAD, bytes(4)), sys.byteorder) > 0
    except OSError:
        # It is closed, or something else, such as /dev/null.
        return False


def file_of_command(words: Sequence[str], *, is_typed: bool = False) -> Path:
    """Return the name of a virtual file of this process with a command's experiment. Raises UserError.

    is_typed  whether the command is that of the command line, where its faults are shown
    """
    from toolkit.registry import load_code, of_words

    if not (code := of_words()):
        raise UserError("no installed workload runs a command: install slurm-toolkit again")
    return file_of(load_code(code)(words), is_typed=is_typed)


def file_of(tree: Mapping[str, Any], *, is_typed: bool = False) -> Path:
    """Return the name of a virtual file of this process that has an experiment as its text."""
    from toolkit.config.composition.yaml_files import dump, give_text

    text = dump(tree)
    # The hash gives another command another file name: a sweep has only one file.
    path = Path.cwd() / f"<{tree['name']} {hashlib.sha256(text.encode()).hexdigest()[:8]}>.yaml"
    give_text(path, text, is_typed=is_typed)
    return path
