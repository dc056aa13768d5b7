"""Wait for a run to finish, then replace this process by the follower. On this machine, without Slurm.

python -P -m slurm.submission.follow AWAITED RUN MODULE [ARGUMENT …]

The process id stays the same, so `stk status` and `stk cancel` find the follower from the start. If the
awaited run does not finish, or this process is stopped, the follower never starts, and its events record why.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

from slurm.status.dependency import NOT_BEGUN
from slurm.status.rows import status
from slurm.status.submissions import last_submission
from toolkit.errors import StkError, UserError
from toolkit.exit_codes import ExitCode
from toolkit.reliability.early_signals import interrupt_on_request
from toolkit.run.events import note_event
from toolkit.run.folder_trust import python_path
from toolkit.run.run_dir import RunDir

#: Seconds between two looks: files may be read often, the controller is queried less often.
_LOOK_S, _ASK_SLURM_S = 1.0, 15.0
#: A run in these states that is not live continues only when a person resumes it.
_ENDED = ("failed", "cancelled", "held")


def follow(awaited: RunDir, run: RunDir, words: list[str]) -> int:
    """Wait for a run to finish, then become `python -P -m WORDS`; return an exit code if it did not."""
    try:
        # No handler that sets an Event: it may interrupt wait(), which holds the lock that set() needs. A
        # signal that came earlier interrupts at once.
        interrupt_on_request(signal.SIGTERM)
        while (why := _obstacle(awaited)) == "":
            last = last_submission(awaited)
            is_job = last is not None and last.cluster == "slurm"
            time.sleep(_ASK_SLURM_S if is_job else _LOOK_S)
        if why is None:
            become(run, words)
    except KeyboardInterrupt:
        note_event(run, NOT_BEGUN, why=f"it was cancelled while it waited for {awaited.run_id}")
        return ExitCode.INTERRUPTED
    except UserError as error:
        why = str(error)
    note_event(run, NOT_BEGUN, why=why)
    return ExitCode.FAILED


def _obstacle(awaited: RunDir) -> str | None:
    """Return None if the follower may start, an empty text if it must wait, or why it never will start."""
    try:
        (now,) = status([awaited])
    except (OSError, StkError):
        # The file system or the controller is temporarily unavailable.
        return ""
    if now.state == "finished":
        return None
    if now.is_live or now.state not in _ENDED:
        return ""
    return f"{awaited.run_id}, which it waited for, is {now.state}: {now.reason}"


def become(run: RunDir, words: list[str]) -> NoReturn:
    """Replace this process by another module, with the run's own code. Raises UserError."""
    environment = {**os.environ, "PYTHONPATH": python_path(run, os.environ.get("PYTHONPATH"))}
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-P", "-m", *words], environment)


def main() -> int:
    awaited, run, *words = sys.argv[1:]
    return follow(RunDir(Path(awaited)), RunDir(Path(run)), words)


if __name__ == "__main__":
    sys.exit(main())
