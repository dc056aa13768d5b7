"""An experiment from a command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from toolkit.config.composition.interpolation import literal

#: Programs that start the processes of a host themselves.
_LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed"})
_SCRIPT = re.compile(r"[^-].*\.(py|sh)")
_LONGEST_NAME = 64


def experiment_of(words: Sequence[str]) -> dict[str, Any]:
    """Return the experiment of a command, as in an experiment file: named after its script or program."""
    launch = "node" if PurePath(words[0]).name in _LAUNCHERS else "each"
    task = {"kind": "command", "run": literal(list(words)), "launch": launch}
    return {"name": _name(words), "task": task}


def _name(words: Sequence[str]) -> str:
    script = next((word for word in words if _SCRIPT.fullmatch(word)), None)
    if script is not None:
        found = PurePath(script).stem
    elif "-m" in words[1:-1]:
        found = words[words.index("-m") + 1].rpartition(".")[2]
    else:
        found = PurePath(words[0]).name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", found).lstrip("._-")[:_LONGEST_NAME] or "command"
