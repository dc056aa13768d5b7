"""What every Python process of a job runs first, copied to a folder on PYTHONPATH as sitecustomize.py.

A rank waits here while a file called `hold` lies beside this one, and leaves what its environment was
when it ended or left its group.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from pathlib import Path
from typing import NoReturn

_FOLDER = Path(__file__).parent
_DEADLINE_S = 600


def _wait_while_held() -> None:
    deadline = time.monotonic() + _DEADLINE_S
    (_FOLDER / f"waiting.{os.environ['SLURM_JOB_ID']}.{os.environ['SLURM_PROCID']}").touch()
    while (_FOLDER / "hold").exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def _leave_environment() -> None:
    if "RANK" in os.environ:
        temporary = _FOLDER / f"{os.getpid()}.tmp"
        temporary.write_text(json.dumps(dict(os.environ)), encoding="utf-8")
        temporary.rename(_FOLDER / f"environment.{os.getpid()}.json")


def _observe_end() -> None:
    """A worker leaves by os._exit, which asks no handler of atexit."""
    atexit.register(_leave_environment)
    leave_at_once = os._exit

    def leave(status: int) -> NoReturn:
        _leave_environment()
        leave_at_once(status)

    os._exit = leave


def _observe_leaving_a_group() -> None:
    """A rank takes its variables back then; all of them are there when the first one goes."""

    def at_event(event: str, arguments: tuple[object, ...]) -> None:
        if event == "os.unsetenv" and arguments[0] == b"RANK":
            _leave_environment()

    sys.addaudithook(at_event)


if __name__ == "sitecustomize":
    _observe_end()
    _observe_leaving_a_group()
    if "SLURM_PROCID" in os.environ:
        _wait_while_held()
