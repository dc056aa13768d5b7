"""Modules that start with a signal that is already pending."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.patience import PATIENCE_S

_ROOT = str(Path(__file__).parents[2])


def end_with_pending_sigterm(words: Sequence[str]) -> int:
    """Run a module that a SIGTERM awaits, as after one that arrived early; return its exit code.

    A process inherits blocked signals, and keeps those that are pending when it becomes another program.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-m", *words],
        env={**os.environ, "PYTHONPATH": _ROOT},
        preexec_fn=_leave_sigterm_pending,
        timeout=PATIENCE_S,
    )
    return done.returncode


def _leave_sigterm_pending() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    os.kill(os.getpid(), signal.SIGTERM)
