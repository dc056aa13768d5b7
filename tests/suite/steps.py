"""Running the steps of the suite, each a command, and measuring how long they take."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command of the suite.

    repeat    what a person types to run it alone
    failures  where pytest writes its failures; None for other programs
    """

    name: str
    command: tuple[str, ...]
    repeat: str
    failures: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a step ended: its exit status, its seconds, and what it printed where that was kept."""

    step: Step
    code: int
    seconds: float
    output: str = ""


def run(step: Step, root: Path, *, keeps_output: bool = False) -> Ended:
    """Run a step. What it prints is shown at once, or kept for a step that runs beside others."""
    began = time.monotonic()
    done = subprocess.run(
        step.command,
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if keeps_output else None,
        stderr=subprocess.STDOUT if keeps_output else None,
        text=True,
        errors="replace",
        check=False,
    )
    return Ended(step=step, code=done.returncode, seconds=time.monotonic() - began, output=done.stdout or "")
