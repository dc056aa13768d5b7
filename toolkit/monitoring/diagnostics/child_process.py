"""Asking a child process, so that a file system or a driver that hangs blocks only the child."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

#: Begins each line of an answer: a site's profile and libraries may print other lines.
MARK = "stk-probe: "
_SOURCE = Path(__file__).resolve().parents[3]
#: Seconds for a process to exit after SIGTERM; one that waits for a dead server never exits.
_EXIT_S = 2.0


def command(questions: Sequence[str]) -> list[str]:
    """The command line that answers these questions, with the Python of this process."""
    return [sys.executable, "-P", "-m", "toolkit.monitoring.diagnostics", *questions]


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment in which the command finds this code."""
    inherited = environ.get("PYTHONPATH")
    paths = [str(_SOURCE), *([inherited] if inherited else [])]
    return {**environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}


def ask_here(questions: Sequence[str], timeout_s: float) -> dict[str, Any]:
    """Return the answers of a child process within the time; the key "why" explains missing ones."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(
            command(questions),
            env=environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        why = _wait(process, timeout_s)
        output.seek(0)
        answers = read(output.read())
    return answers if why is None else {**answers, "why": why}


def read(output: str) -> dict[str, Any]:
    """Parse the answers in the output."""
    answers: dict[str, Any] = {}
    for line in output.splitlines():
        with suppress(ValueError):
            if line.startswith(MARK):
                name, facts = json.loads(line.removeprefix(MARK))
                answers[name] = facts
    return answers


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> str | None:
    """Wait for the process; end it after the time limit. Return why it gave no answer, or None."""
    try:
        code = process.wait(timeout_s)
        return None if code == 0 else f"the process ended with code {code}"
    except subprocess.TimeoutExpired:
        return f"no answer in {timeout_s:g} s"
    finally:
        if process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_EXIT_S)
        if process.poll() is None:
            process.kill()
