"""Answers questions about the machine that this process runs on.

python -m toolkit.monitoring.diagnostics QUESTION…

QUESTION is machine, gpus, torch, folder=PATH, mount=PATH (without trying it out) or exchange=PATH. Each
answer is printed at once, on its own line, because the next question may hang.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from toolkit.monitoring.diagnostics.child_process import MARK
from toolkit.monitoring.diagnostics.folder import folder
from toolkit.monitoring.diagnostics.gpus import gpus
from toolkit.monitoring.diagnostics.machine import machine
from toolkit.monitoring.diagnostics.shared_folder_probe import ask
from toolkit.monitoring.diagnostics.torch_build import torch_build
from toolkit.system.process_main import take_stdout

#: Seconds for the other host to see a file: attributes are cached for as long as a minute.
_EXCHANGE_S = 70.0


def main(questions: list[str]) -> int:
    """Answer all of them."""
    # So that a probe removes its temporary files.
    signal.signal(signal.SIGTERM, _leave)
    # Output of libraries must not get between the lines.
    output = take_stdout()
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


_ANSWERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "machine": lambda _: machine(),
    "gpus": lambda _: gpus(),
    "torch": lambda _: torch_build(),
    "folder": folder,
    "mount": partial(folder, tries=False),
    "exchange": partial(ask, timeout_s=_EXCHANGE_S),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
