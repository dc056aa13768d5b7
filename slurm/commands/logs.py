"""stk logs"""

from __future__ import annotations

import math
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from slurm.status.rows import status
from slurm.submissions import last_submission
from toolkit.create import experiment_dir
from toolkit.errors import RunNotFound
from toolkit.failure.records import tell_failure
from toolkit.files import read_json
from toolkit.rundir import RunDir, find_run

_POLL_S = 0.5
_ASK_SLURM_S = 5.0


def run(arguments: Namespace) -> int:
    """Print the log of a rank; after a failure its reason first."""
    target = find_run(arguments.run, experiment_dir())
    failure = read_json(target.failure)
    if failure is not None:
        print(tell_failure(failure) + "\n")
    path = _newest_log(target, arguments.rank)
    if path is None and not arguments.follow:
        raise RunNotFound(f"{target.run_id} has no log of rank {arguments.rank} yet in {target.logs}")
    for text in _follow(target, arguments.rank) if arguments.follow else [_read(path)]:
        print(text, end="", flush=True)
    return 0


def _newest_log(target: RunDir, rank: int) -> Path | None:
    found = target.logs.glob(f"*.rank_{rank:05d}.log") if target.logs.is_dir() else iter(())
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def _read(path: Path | None) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path else ""


def _follow(target: RunDir, rank: int) -> Iterator[str]:
    """What the newest log gets, across restarts, until the run is no longer live."""
    current, position = None, 0
    is_live, asked = True, -math.inf
    while True:
        if time.monotonic() - asked > _ask_every_s(target):
            is_live, asked = status([target])[0].is_live, time.monotonic()
        newest = _newest_log(target, rank)
        if newest != current:
            current, position = newest, 0
        if current is not None:
            with open(current, encoding="utf-8", errors="replace") as stream:
                stream.seek(position)
                yield stream.read()
                position = stream.tell()
        if not is_live:
            return
        time.sleep(_POLL_S)


def _ask_every_s(target: RunDir) -> float:
    """Files may be read often; the controller is asked gently."""
    last = last_submission(target)
    return _ASK_SLURM_S if last is not None and last.cluster == "slurm" else _POLL_S
