"""Starting the ranks of a run on this machine, and ending them together.

With other machines (toolkit.machines) machine 0 decides for all; the others start and leave as it says.
"""

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
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TextIO

from toolkit.attempts.recovery import after_failure, conclude, release
from toolkit.config import Experiment, load_resolved, load_resources
from toolkit.errors import UserError
from toolkit.events import note_event
from toolkit.failure.classes import OOM_KILLED
from toolkit.failure.fence import EXIT_FENCED, is_fenced
from toolkit.failure.oom import oom_kills
from toolkit.failure.records import KILLED, silent_record, write_first
from toolkit.failure.watchdog import EXIT_HUNG
from toolkit.files import read_json, write_json
from toolkit.machines.crew import Crew, Leader, Member
from toolkit.machines.layout import Machines
from toolkit.notices.notify import notify
from toolkit.rundir import RunDir
from toolkit.world import NONCE_VARIABLE

#: Exit status of a worker that saved and left (toolkit.worker imports torch, so it is not imported here).
EXIT_YIELDED = 75
EXIT_INTERRUPTED = 130
EXIT_FAILED = 4
#: With these a worker has said why it ends.
_WORKERS_OWN = (0, 2, EXIT_FAILED, EXIT_YIELDED, EXIT_FENCED, EXIT_HUNG, EXIT_INTERRUPTED)

#: Seconds that the others get after one has failed; those that hang will not use them.
_GRACE_S, _GRACE_AFTER_HANG_S = 20.0, 3.0
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_POLL_S = 0.05


def launch(run: RunDir, environ: Mapping[str, str], crew: Crew, *, quiet: bool = False) -> int:
    """Train a run in the processes of a crew and wait for them; return the exit code for the user.

    Rank 0 writes to this terminal unless quiet, the others to their logs. When one fails, the
    others are ended, and all start again where recovery says so. SIGTERM and Ctrl-C let them save and
    leave.
    """
    run.logs.mkdir(parents=True, exist_ok=True)
    launcher = _Launcher(run, crew, environ, quiet)
    return _follow(run, launcher, crew) if isinstance(crew, Member) else _lead(run, launcher, crew)


def _lead(run: RunDir, launcher: _Launcher, crew: Crew) -> int:
    """Start the ranks, again where that is worth it; what is decided here holds for all machines."""
    release(run)
    while True:
        if launcher.is_asked_to_stop:
            crew.leave(run, EXIT_INTERRUPTED)
            return EXIT_INTERRUPTED
        # Of an earlier start; whoever explains this one must not find it.
        run.failure.unlink(missing_ok=True)
        nonce = f"local-{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
        crew.start(nonce)
        codes = launcher.start(nonce)
        codes += crew.reports(run, nonce)
        code, is_held = exit_code(codes), False
        if code not in (0, EXIT_INTERRUPTED, UserError.exit_code) and not is_fenced(run, nonce):
            conclude(run, next(code for code in codes if code not in (0, EXIT_YIELDED)), nonce=nonce)
            decision = after_failure(run, _experiment(run))
            wants_stop = launcher.is_asked_to_stop or crew.wants_stop
            if decision.action == "retry" and not wants_stop and crew.is_whole:
                note_event(run, "restarted", why=decision.why, exclude=list(decision.exclude))
                sys.stderr.write(f"{decision.why}; starting again\n")
                notify(run, "requeue", decision.why)
                continue
            is_held = decision.action == "hold"
        if isinstance(crew, Leader) and not crew.is_whole:
            sys.stderr.write(f"{crew.gone} is gone: start all machines again, and the run goes on\n")
        crew.leave(run, code)
        if code not in (0, EXIT_INTERRUPTED) and _is_known(run, nonce):
            notify(run, "hold" if is_held else "failure")
        return code


def _follow(run: RunDir, launcher: _Launcher, crew: Member) -> int:
    """Start the ranks of this machine when machine 0 says so, until it says that all is over.

    Without machine 0 nothing is started again: it alone knows the run's other ranks.
    """
    code, has_reported = EXIT_FAILED, False
    while True:
        order = crew.order()
        if order is None:
            # Once it has a report, machine 0 answers.
            if launcher.is_asked_to_stop and not has_reported:
                return EXIT_INTERRUPTED
            continue
        if "leave" in order:
            if not crew.is_whole:
                sys.stderr.write(f"node 0 on {crew.leader} is gone: start all machines again\n")
                return code
            if order["failure"] is not None and read_json(run.failure) is None:
                write_json(run.failure, order["failure"])
            return int(order["leave"])
        nonce = str(order["start"])
        if (read_json(run.failure) or {}).get("nonce") != nonce:
            run.failure.unlink(missing_ok=True)
        crew.start(nonce)
        codes = launcher.start(nonce)
        code = exit_code(codes) or EXIT_FAILED
        crew.report(run, nonce, codes, wants_stop=launcher.is_asked_to_stop)
        has_reported = True


def _is_known(run: RunDir, nonce: str) -> bool:
    """Whether the failure is this start's: one that another start has kept away is no news of the run."""
    return (read_json(run.failure) or {}).get("nonce") == nonce


def _experiment(run: RunDir) -> Experiment:
    """The run's experiment, with the resources of its last submission."""
    experiment = load_resolved(run.config)
    if not run.job.exists():
        return experiment
    return replace(experiment, resources=load_resources(run.job, experiment))


def prepare(config: str, overrides: Sequence[str], environ: Mapping[str, str], output: TextIO) -> int:
    """Build the prepared data of an experiment in a process of its own; return its exit code.

    output  a file that takes what it says
    """
    command = [sys.executable, "-m", "toolkit.worker", "--prepare", config, *overrides]
    return subprocess.run(command, env=dict(environ), stdout=output, check=False).returncode


def rank_environment(
    run: RunDir, nonce: str, local_rank: int, machines: Machines, environ: Mapping[str, str]
) -> dict[str, str]:
    """The environment of one rank of this machine; the code is the run's own."""
    environment = dict(environ)
    environment.update(
        {
            "RANK": str(machines.layout.ranks(machines.node)[local_rank]),
            "LOCAL_RANK": str(local_rank),
            "WORLD_SIZE": str(machines.layout.size),
            "LOCAL_WORLD_SIZE": str(machines.count),
            "GROUP_RANK": str(machines.node),
            "GROUP_WORLD_SIZE": str(len(machines.layout.counts)),
            NONCE_VARIABLE: nonce,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(run.code), environ.get("PYTHONPATH")])),
            "PYTHONUNBUFFERED": "1",
            # torch warns on each connection where a host has no name for an address.
            "TORCH_CPP_LOG_LEVEL": environ.get("TORCH_CPP_LOG_LEVEL", "ERROR"),
        }
    )
    return environment


class _Launcher:
    """Starts the ranks of a run, passes signals on to them, and waits for them."""

    def __init__(self, run: RunDir, crew: Crew, environ: Mapping[str, str], quiet: bool) -> None:
        self._run = run
        self._crew = crew
        self._machines = crew.machines
        self._environ = environ
        self._quiet = quiet
        self._ranks: list[subprocess.Popen[bytes]] = []
        self._oom_kills: int | None = None
        self.is_asked_to_stop = False
        signal.signal(signal.SIGTERM, self._forward)
        signal.signal(signal.SIGINT, self._forward)

    def start(self, nonce: str) -> list[int]:
        """Start this machine's ranks, unless asked to stop, and wait for them; their exit statuses."""
        with ExitStack() as stack:
            # Held back until there are ranks to pass them on to. The ranks begin like this too: each lets
            # them in once it can save and leave, which takes seconds, for torch is imported first.
            signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
            try:
                if self.is_asked_to_stop:
                    return [EXIT_INTERRUPTED]
                self._oom_kills = oom_kills()
                self._ranks = [self._start_rank(nonce, rank, stack) for rank in range(self._machines.count)]
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
            return self._wait(nonce)

    def _start_rank(self, nonce: str, local_rank: int, stack: ExitStack) -> subprocess.Popen[bytes]:
        output = None
        rank = self._machines.layout.ranks(self._machines.node)[local_rank]
        if rank > 0 or self._quiet:
            output = stack.enter_context(self._run.log(nonce, rank).open("ab"))
        # A run that began with older code has no such module, and goes on without.
        module = "toolkit.rank" if self._run.has_code("toolkit.rank") else "toolkit.worker"
        return subprocess.Popen(
            # -P: or Python would prefer the code in the working directory to the run's own.
            [sys.executable, "-P", "-m", module, str(self._run.path)],
            env=rank_environment(self._run, nonce, local_rank, self._machines, self._environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self.is_asked_to_stop = True
        if number == signal.SIGINT and sys.stdin.isatty():
            # Ctrl-C on a terminal reaches the ranks by itself: they are of the same process group.
            return
        for process in self._ranks:
            with suppress(ProcessLookupError):
                process.send_signal(number)

    def _is_oom(self) -> bool:
        """Whether the kernel of this machine has run out of memory since the ranks were started."""
        now = oom_kills()
        return now is not None and self._oom_kills is not None and now > self._oom_kills

    def _wait(self, nonce: str) -> list[int]:
        """Wait for all; after a failure give the others a moment, then kill them."""
        deadline = None
        while True:
            codes = [process.poll() for process in self._ranks]
            has_failed = any(code not in (None, 0, EXIT_YIELDED) for code in codes)
            # Also without a failure here: it carries the others' messages.
            if self._crew.has_failed(self._run, nonce) | has_failed and deadline is None:
                deadline = time.monotonic() + (_GRACE_AFTER_HANG_S if EXIT_HUNG in codes else _GRACE_S)
                first_rank = self._machines.layout.first_ranks[self._machines.node]
                _note_silent(self._run, nonce, codes, first_rank, is_oom=self._is_oom())
                self._crew.fail()
            if None not in codes:
                return [process.wait() for process in self._ranks]
            if deadline is not None and time.monotonic() > deadline:
                for process in self._ranks:
                    process.kill()
            time.sleep(_POLL_S)


def exit_code(returncodes: list[int]) -> int:
    """What the ranks' exit statuses mean for the user: 0, 2, 4 or 130."""
    failed = [code for code in returncodes if code not in (0, EXIT_YIELDED)]
    if EXIT_INTERRUPTED in failed:
        return EXIT_INTERRUPTED
    if failed:
        return 2 if 2 in failed else EXIT_FAILED
    return EXIT_INTERRUPTED if EXIT_YIELDED in returncodes else 0


def _note_silent(
    run: RunDir, nonce: str, codes: Sequence[int | None], first_rank: int, *, is_oom: bool
) -> None:
    """Write down the first rank that ended in a way in which it could not write down why.

    is_oom  whether memory has run out on this machine meanwhile
    """
    for rank, code in enumerate(codes, start=first_rank):
        if code is None or code in _WORKERS_OWN:
            continue
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        seen = run.heartbeat(nonce, rank).exists()
        # Python's own status for an error before the worker is at work, such as a failing import.
        name = "exception" if code == 1 and not seen else KILLED
        if is_oom and code == -signal.SIGKILL:
            name, how = OOM_KILLED, f"{how}: the machine, or its share of it, ran out of memory"
        write_first(run, silent_record(run, nonce, name, f"rank {rank} {how}", rank, socket.gethostname()))
        return


if __name__ == "__main__":
    crew_here = Crew(Machines.alone(int(sys.argv[2])))
    sys.exit(launch(RunDir(Path(sys.argv[1])), os.environ, crew_here, quiet=True))
