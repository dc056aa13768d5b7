"""The process of a command: start it, send it signals, wait for its end; end those of earlier attempts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from toolkit.errors import UserError
from toolkit.files import read_end
from toolkit.reliability.stop import signal_after_parent
from toolkit.run.fence import is_fenced
from toolkit.run.run_dir import RunDir
from toolkit.system.processes import ancestors, environments, group_lives

_BLOCK_BYTES = 1 << 16
#: Bytes at the end of the output that are searched for the cause of a failure.
_TAIL_BYTES = 1 << 15
#: Seconds to wait for the last output after the command has ended: a leftover process may hold the pipe.
_LAST_OUTPUT_S = 2.0


class Program:
    """A command in its own process group. Its output goes to a log.

    shown  whether its output also goes to the standard output of this process
    Raises UserError if it cannot be started.
    """

    def __init__(
        self, words: Sequence[str], folder: Path, environ: Mapping[str, str], log: Path, *, shown: bool
    ) -> None:
        self._log = log.open("ab", buffering=0)
        self._log_path, self._log_start = log, log.stat().st_size
        try:
            self._process = subprocess.Popen(
                words,
                cwd=folder,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if shown else self._log,
                stderr=subprocess.STDOUT,
                process_group=0,
                preexec_fn=_before_exec,
            )
        except OSError as error:
            self._log.close()
            hint = f", as in: python {words[0]}" if words[0].endswith(".py") else ""
            raise UserError(f"the command {words[0]!r} cannot be started: {error.strerror}{hint}") from None
        self._reader: threading.Thread | None = None
        if shown:
            assert self._process.stdout is not None
            arguments = (self._process.stdout, self._log)
            self._reader = threading.Thread(target=_copy, args=arguments, daemon=True)
            self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self, seconds: float) -> int | None:
        """Return its exit status, negative for a signal; None if it has not ended in this time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def send(self, number: int) -> None:
        """Send a signal to the process group of the command."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    @property
    def lives(self) -> bool:
        """Whether any process of its group is alive."""
        return group_lives(self._process.pid)

    def close(self) -> None:
        """Kill leftover processes of its group, and read its last output."""
        self.send(signal.SIGKILL)
        if self._reader is not None:
            self._reader.join(_LAST_OUTPUT_S)
        self._log.close()

    def last_output(self) -> str:
        """Return the end of its output; complete after `close`."""
        written = self._log_path.stat().st_size - self._log_start
        return read_end(self._log_path, min(written, _TAIL_BYTES)).decode("utf-8", "replace")


def end_earlier_processes(run: RunDir) -> None:
    """Kill the processes on this host that an earlier attempt has left, before they write beside this one.

    Not what this process descends from: a command may start its own run again. If a rank is killed, its
    command gets SIGTERM, but not what a shell or another wrapper has started. Not for an attempt in a job:
    there the scheduler ends all processes, and jobs that the command has submitted inherit its variables.
    """
    own = set(ancestors())
    for pid, environ in environments():
        is_of_run = environ.get("STK_RUN_DIR") == str(run.path) and pid not in own
        if is_of_run and is_fenced(run, environ.get("STK_NONCE", "")):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _before_exec() -> None:
    """Prepare the new process before it becomes the command."""
    # The early warning must not end a command without a handler for it. A handler replaces this setting.
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # The command must not outlive its rank, even if the rank is killed.
    signal_after_parent(signal.SIGTERM)


def _copy(source: BinaryIO, log: BinaryIO) -> None:
    """Copy the data of a pipe to a log and to standard output."""
    while block := os.read(source.fileno(), _BLOCK_BYTES):
        with suppress(OSError, ValueError):
            log.write(block)
        # If the terminal is closed, the log continues.
        with suppress(OSError, ValueError):
            sys.stdout.buffer.write(block)
            sys.stdout.buffer.flush()
