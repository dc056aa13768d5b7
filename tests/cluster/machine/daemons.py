"""Daemons without an init: started in a session of their own, known by a file with their pid."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.patience import PATIENCE_S

from ..errors import ClusterError
from ..waiting import wait_until
from .programs import CLEAN_ENVIRONMENT


class Daemons:
    """Starts, watches and stops daemons; with the pid files another process can stop them too."""

    def __init__(self, pids: Path, logs: Path) -> None:
        self._pids = pids
        self._logs = logs
        self._children: list[subprocess.Popen[bytes]] = []

    def run(self, name: str, command: Sequence[str]) -> None:
        """Run `command` to its end, as a daemon: if this process is killed meanwhile, kill_all finds it."""
        self.start(name, command)
        exit_code = self._children[-1].wait(PATIENCE_S)
        if exit_code != 0:
            raise ClusterError(f"{name} failed with exit code {exit_code}{self._output_tail(name)}")
        self._pid_file(name).unlink()

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start `command` in the background; what it prints goes to its output file."""
        with self._output(name).open("ab") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd="/",
                env=CLEAN_ENVIRONMENT | dict(environment or {}),
            )
        self._children.append(child)
        self._pid_file(name).write_text(f"{child.pid} {_start_time(child.pid)}\n")

    def stop(self, name: str) -> None:
        """Ask the daemon to end and return when it has ended; one that does not run is no error."""
        pid = self._pid(name)
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
        self._wait_for_end(name)

    def kill_all(self) -> None:
        for name in sorted(file.stem for file in self._pids.glob("*.pid")):
            pid = self._pid(name)
            if pid is not None:
                # With its children: each daemon leads a process group of its own.
                os.killpg(pid, signal.SIGKILL)
            self._wait_for_end(name)

    def _wait_for_end(self, name: str) -> None:
        wait_until(
            lambda: self._pid(name) is None,
            complaint=lambda: f"{name} (pid {self._pid(name)}) does not end{self._output_tail(name)}",
        )
        self._pid_file(name).unlink(missing_ok=True)
        self.reap()

    def reap(self) -> None:
        """Collect the exit codes of dead children, which would stay as zombies."""
        self._children = [child for child in self._children if child.poll() is None]

    def wait_for(self, name: str, ready: Callable[[], bool]) -> None:
        """Poll `ready`; raise with the end of the daemon's output when it dies or is not ready in time."""

        def is_ready() -> bool:
            if self._pid(name) is None:
                raise ClusterError(f"{name} has ended{self._output_tail(name)}")
            return ready()

        wait_until(is_ready, lambda: f"{name} is not ready{self._output_tail(name)}")

    def _output_tail(self, name: str) -> str:
        path = self._output(name)
        text = path.read_text(errors="replace") if path.exists() else ""
        return "\n".join([f"\nThe end of {path}:", *text.splitlines()[-25:]])

    def _output(self, name: str) -> Path:
        # Not NAME.log: there Slurm's daemons write themselves, with times, once they have read slurm.conf.
        return self._logs / f"{name}.out"

    def _pid_file(self, name: str) -> Path:
        return self._pids / f"{name}.pid"

    def _pid(self, name: str) -> int | None:
        """Return the pid if the daemon runs; a process that got a dead one's pid has another start time."""
        try:
            pid, start_time = self._pid_file(name).read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        return int(pid) if _start_time(int(pid)) == start_time else None


def _start_time(pid: int) -> str | None:
    """Return when the process started, in clock ticks since boot; None if it is dead, a zombie included."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The program's name stands in parentheses and may hold spaces: count from behind it.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]
