"""Starting the ranks of a run on this machine, and ending them together."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType

from toolkit.failure import write_first
from toolkit.rundir import RunDir
from toolkit.world import NONCE_VARIABLE

#: Exit status of a worker that saved and left (toolkit.worker imports torch, so it is not imported here).
EXIT_YIELDED = 75
EXIT_INTERRUPTED = 130
EXIT_FAILED = 4

_GRACE_S = 20.0
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_POLL_S = 0.05


def launch(run: RunDir, procs: int, environ: Mapping[str, str], *, quiet: bool = False) -> int:
    """Train a run in so many processes and wait for them; return the exit code for the user.

    Rank 0 writes to this terminal unless quiet, the others to their logs. When one fails, the
    others are ended. SIGTERM and Ctrl-C let them save and leave.
    """
    # Of an earlier start; whoever explains this one must not find it.
    run.failure.unlink(missing_ok=True)
    nonce = f"local-{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
    run.logs.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        # Held back until there are ranks to pass them on to. The ranks begin like this too: each lets
        # them in once it can save and leave, which takes seconds, for torch is imported first.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
        try:
            ranks = [_start(run, nonce, rank, procs, environ, stack, quiet) for rank in range(procs)]
            _forward_signals(ranks)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
        return _wait(run, nonce, ranks)


def prepare(config: str, overrides: Sequence[str], environ: Mapping[str, str]) -> int:
    """Build the prepared data of an experiment in a process of its own; return its exit code."""
    command = [sys.executable, "-m", "toolkit.worker", "--prepare", config, *overrides]
    return subprocess.run(command, env=dict(environ), check=False).returncode


def rank_environment(
    run: RunDir, nonce: str, rank: int, procs: int, environ: Mapping[str, str]
) -> dict[str, str]:
    """The environment of one local rank; the code is the run's own."""
    environment = dict(environ)
    environment.update(
        {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(procs),
            "LOCAL_WORLD_SIZE": str(procs),
            NONCE_VARIABLE: nonce,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(run.code), environ.get("PYTHONPATH")])),
            "PYTHONUNBUFFERED": "1",
            # torch warns on each connection where a host has no name for an address.
            "TORCH_CPP_LOG_LEVEL": environ.get("TORCH_CPP_LOG_LEVEL", "ERROR"),
        }
    )
    return environment


def _start(
    run: RunDir,
    nonce: str,
    rank: int,
    procs: int,
    environ: Mapping[str, str],
    stack: ExitStack,
    quiet: bool,
) -> subprocess.Popen[bytes]:
    output = None
    if rank > 0 or quiet:
        output = stack.enter_context(run.log(nonce, rank).open("ab"))
    return subprocess.Popen(
        # -P: or Python would prefer the code in the working directory to the run's own.
        [sys.executable, "-P", "-m", "toolkit.worker", str(run.path)],
        env=rank_environment(run, nonce, rank, procs, environ),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )


def _forward_signals(ranks: list[subprocess.Popen[bytes]]) -> None:
    def forward(number: int, frame: FrameType | None) -> None:
        for process in ranks:
            with suppress(ProcessLookupError):
                process.send_signal(number)

    signal.signal(signal.SIGTERM, forward)
    # Ctrl-C on a terminal reaches the ranks by itself: they are of the same process group.
    signal.signal(signal.SIGINT, forward if not sys.stdin.isatty() else signal.SIG_IGN)


def _wait(run: RunDir, nonce: str, ranks: list[subprocess.Popen[bytes]]) -> int:
    """Wait for all; after a failure give the others a moment, then kill them."""
    deadline = None
    while any(process.poll() is None for process in ranks):
        if deadline is None and any(process.returncode not in (None, 0, EXIT_YIELDED) for process in ranks):
            deadline = time.monotonic() + _GRACE_S
            _note_killed(run, nonce, ranks)
        if deadline is not None and time.monotonic() > deadline:
            for process in ranks:
                process.kill()
        time.sleep(_POLL_S)
    if deadline is None:
        _note_killed(run, nonce, ranks)
    return exit_code([process.returncode for process in ranks])


def exit_code(returncodes: list[int]) -> int:
    """What the ranks' exit statuses mean for the user: 0, 2, 4 or 130."""
    failed = [code for code in returncodes if code not in (0, EXIT_YIELDED)]
    if EXIT_INTERRUPTED in failed:
        return EXIT_INTERRUPTED
    if failed:
        return 2 if 2 in failed else EXIT_FAILED
    return EXIT_INTERRUPTED if EXIT_YIELDED in returncodes else 0


def _note_killed(run: RunDir, nonce: str, ranks: list[subprocess.Popen[bytes]]) -> None:
    """A rank that a signal ended could not write down why."""
    for rank, process in enumerate(ranks):
        code = process.returncode
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            write_first(
                run,
                {
                    "time": time.time(),
                    "nonce": nonce,
                    "rank": rank,
                    "host": socket.gethostname(),
                    "phase": "unknown",
                    "step": None,
                    "class": "killed",
                    "message": f"rank {rank} was ended by {name}",
                    "advice": "SIGKILL without a cause is often the machine running out of memory. "
                    "Resume the run.",
                    "traceback": "",
                },
            )
            return


if __name__ == "__main__":
    sys.exit(launch(RunDir(Path(sys.argv[1])), int(sys.argv[2]), os.environ, quiet=True))
