"""The run of this process, and its rank in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import UserError
from toolkit.run.run_dir import RunDir, experiment_dir

#: Subfolder of the experiments folder for scripts that were started without `stk`.
_ALONE = "alone"

#: Names the process that deletes leftovers of checkpoints; the processes that it starts inherit it.
_TAKEN = "STK_CHECKPOINTS_TAKEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A process of a script, and its run.

    run        the run; a stand-in if the script was started without `stk`
    rank, size among all processes of the script
    attempt    number of this attempt, from 1; 0 in a stand-in
    nonce      names this attempt in the run's files; empty in a stand-in
    restart    how often torchrun has started the processes again within this attempt
    stop_file  exists once the script is asked to leave; None in a stand-in
    watcher    the process of `stk` that watches the script; None in a stand-in
    restarter  the process of `stk` that waits for a save if the watcher is killed; None if none does
    """

    run: RunDir
    rank: int
    size: int
    attempt: int = 0
    nonce: str = ""
    restart: int = 0
    stop_file: Path | None = None
    watcher: int | None = None
    restarter: int | None = None

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which writes the files of the run."""
        return self.rank == 0

    @property
    def is_in_run(self) -> bool:
        """Whether `stk` has started the script."""
        return self.attempt > 0

    @property
    def start(self) -> str:
        """A name for this attempt: the same on all ranks, and unique."""
        return f"{self.nonce}.{self.attempt}.{self.restart}"

    def take_checkpoints(self) -> bool:
        """Take the checkpoints for this process; False if a parent process has them.

        A training may be saving while a process that it has started evaluates a checkpoint.
        """
        here = f"{self.start} {self.run.path} "
        if not os.environ.get(_TAKEN, "").startswith(here):
            os.environ[_TAKEN] = f"{here}{os.getpid()}"
        return os.environ[_TAKEN] == f"{here}{os.getpid()}"


def find_place(environ: Mapping[str, str] = os.environ) -> Place:
    """Read the place from the environment. Raises UserError if RANK or another variable is not a number."""
    rank, size = (_whole(environ, name, default) for name, default in (("RANK", 0), ("WORLD_SIZE", 1)))
    if "STK_RUN_DIR" not in environ:
        return Place(run=_stand_in(), rank=rank, size=size)
    return Place(
        run=RunDir(Path(environ["STK_RUN_DIR"])),
        rank=rank,
        size=size,
        attempt=_whole(environ, "STK_ATTEMPT", 1),
        nonce=environ.get("STK_NONCE", ""),
        restart=_whole(environ, "TORCHELASTIC_RESTART_COUNT", 0),
        stop_file=Path(environ["STK_STOP_FILE"]),
        watcher=_whole(environ, "STK_WATCHER", os.getppid()),
        restarter=_whole(environ, "STK_RESTARTER", 0) or None,
    )


def _stand_in() -> RunDir:
    """Return the folder of a stand-in, named after the script."""
    name = Path(sys.argv[0]).stem if sys.argv and sys.argv[0] else ""
    # `python -c` and a prompt have no script. The script of a notebook is that of its kernel.
    return RunDir(experiment_dir() / _ALONE / (name if name and not name.startswith("-") else "session"))


def _whole(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name) or str(default)
    if not text.isdecimal():
        raise UserError(f"{name} is {text!r} in the environment, expected a whole number")
    return int(text)
