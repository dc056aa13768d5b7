"""An experiment from the words of a command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

#: Programs that start the processes of a host themselves.
_LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed"})
_SCRIPT = re.compile(r"[^-].*\.(py|sh)")
_LONGEST_NAME = 64


def experiment_of(words: Sequence[str]) -> dict[str, Any]:
    """The experiment of a command, as it would stand in a file: named after its script or program."""
    launch = "node" if PurePath(words[0]).name in _LAUNCHERS else "each"
    run = [_literal(word) for word in words]
    return {"name": _name(words), "task": {"kind": "command", "run": run, "launch": launch}}


def _name(words: Sequence[str]) -> str:
    script = next((word for word in words if _SCRIPT.fullmatch(word)), None)
    if script is not None:
        found = PurePath(script).stem
    elif "-m" in words[1:-1]:
        found = words[words.index("-m") + 1].rpartition(".")[2]
    else:
        found = PurePath(words[0]).name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", found).lstrip("._-")[:_LONGEST_NAME] or "command"


def _literal(word: str) -> str:
    """A word as a file has it: there `${` begins a reference."""
    return re.sub(r"(\\*)\$\{", r"\1\1\\${", word)
