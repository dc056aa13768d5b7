"""Answers questions about the machine that this process runs on: python -m toolkit.probing QUESTION…

QUESTION is machine, gpus, torch, folder=PATH, mount=PATH (without trying it out) or exchange=PATH. A line for
each answer, as soon as it is there, for the next one may hang.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from toolkit.probing.asking import MARK

#: Seconds for the other host to see a file: attributes are cached for as long as a minute.
_EXCHANGE_S = 70.0


def main(questions: list[str]) -> int:
    """Answer all of them."""
    # So that what was made for a probe is removed.
    signal.signal(signal.SIGTERM, _leave)
    # What libraries print must not get between the lines.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for question in questions:
        name, _, path = question.partition("=")
        try:
            facts = _ANSWERS[name](Path(path))
        except Exception as error:
            facts = {"why": f"{type(error).__name__}: {error}"}
        output.write(MARK + json.dumps([name, facts]) + "\n")
        output.flush()
    return 0


def _leave(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _machine(_: Path) -> dict[str, Any]:
    from toolkit.probing.machine import machine

    return machine()


def _gpus(_: Path) -> dict[str, Any]:
    from toolkit.probing.gpus import gpus

    return gpus()


def _torch(_: Path) -> dict[str, Any]:
    from toolkit.probing.torch_build import torch_build

    return torch_build()


def _folder(path: Path) -> dict[str, Any]:
    from toolkit.probing.folder import folder

    return folder(path)


def _mount(path: Path) -> dict[str, Any]:
    from toolkit.probing.folder import folder

    return folder(path, tries=False)


def _exchange(path: Path) -> dict[str, Any]:
    from toolkit.probing.exchange import ask

    return ask(path, _EXCHANGE_S)


_ANSWERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "machine": _machine,
    "gpus": _gpus,
    "torch": _torch,
    "folder": _folder,
    "mount": _mount,
    "exchange": _exchange,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
