"""`stk run -- COMMAND`: an experiment from a command line instead of a file."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shlex
import shutil
import stat
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slurm.commands.common import TAKE_WORDS, warn
from toolkit.errors import UserError

#: The programs that run scripts, by the endings of these.
_SCRIPTS = {".py": "python", ".sh": "bash"}
_PYTHON = re.compile(r"python[\d.]*")


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


def refuse_without_dashes(words: Sequence[str], config: str, strays: Sequence[str]) -> None:
    """Raise UserError with the right command line if CONFIG is the user's own command without `--`.

    strays  words that are neither options of `stk` nor key=value
    """
    name = words[0]
    if name not in TAKE_WORDS or (program := _program_for(config, strays)) is None:
        return
    if name == "run" and all(word.startswith("-") for word in strays) and _is_run(config):
        return
    places = [place for place, word in enumerate(words) if place and word == config]
    # An option may have the same word as its value. Strays follow CONFIG.
    places = places[: max(1, len(places) - strays.count(config))]
    typed = (place for place in places if not words[place - 1].startswith("-") or "=" in words[place - 1])
    place = next(typed, places[-1])
    before, after = [*words[1:place]], [*words[place + 1 :]]
    if name == "sweep":
        from slurm.commands.experiments.sweep_actions import ACTIONS

        if config in ACTIONS:
            return
        keys = [word for word in after if "=" in word and not word.startswith("-")]
        before, after = [*before, *keys], [word for word in after if word not in keys]
    right = shlex.join(["stk", name, *before, "--", *program, config, *after])
    more = " (options of stk stand before the --)" if any(word.startswith("-") for word in after) else ""
    raise UserError(f"{config} is no experiment file. Write -- before your own command{more}: {right}")


def _is_run(name: str) -> bool:
    from toolkit.run.run_dir import runs_of_experiment

    return "/" not in name and bool(runs_of_experiment(name))


def _program_for(config: str, strays: Sequence[str]) -> list[str] | None:
    """Return the words that run a script, none for a program; None for anything else."""
    # Unlike those of Path, these functions accept a word that is too long for a path.
    path, exists = Path(config), os.path.exists(config)
    if path.suffix in _SCRIPTS and os.path.isfile(config) == exists:
        # Without strays, a Python file may have the functions of a task.
        return [_SCRIPTS[path.suffix]] if strays or (exists and path.suffix != ".py") else None
    # Without strays, a name may be that of a run.
    if not strays or any(os.path.exists(f"{config}{suffix}") for suffix in (".yaml", ".yml")):
        return None
    is_program = not exists and shutil.which(config) is not None
    return [] if is_program or _PYTHON.fullmatch(path.name) else None


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
    from toolkit.registry import first_code, load_code

    if not (code := first_code("of_words")):
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
