"""The exit status of a rank, and its output on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from toolkit.config.secrets import concealed
from toolkit.errors import StkError
from toolkit.run.failure.classes import PEER_LOST, class_of
from toolkit.run.failure.own_frames import own_trace
from toolkit.run.run_dir import RunDir
from toolkit.system.output.sanitize import clean
from toolkit.system.world import NONCE_VARIABLE


def exit_status(work: Callable[[], int], folder: Path) -> int:
    """Do the work of a rank and return its exit status; an error is printed, unless a launcher prints it.

    folder   the run's folder; a launcher shows its failure.json, whichever rank wrote it
    """
    try:
        return work()
    except StkError as error:
        if not _is_shown(folder):
            print(f"error: {clean(concealed(str(error)))}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        # If a rank only lost its peers, the log is enough: the first failure matters.
        if class_of(error) != PEER_LOST:
            print(concealed(own_trace(error)), file=sys.stderr)
        elif not _is_shown(folder):
            print(f"error: rank {os.environ.get('RANK', 0)} lost its peers", file=sys.stderr)
        return StkError.exit_code


def _is_shown(folder: Path) -> bool:
    """Whether a launcher shows the failure."""
    return NONCE_VARIABLE in os.environ and RunDir(folder).failure.exists()
