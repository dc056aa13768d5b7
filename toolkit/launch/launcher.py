"""Starting the ranks of a run on this machine, and ending them together.

With several machines (toolkit.launch.machines) node 0 decides for all, and the others follow its orders.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from types import FrameType
from typing import Any, TextIO

from toolkit.config import load_resolved
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json, write_json
from toolkit.launch.leftovers import end_leftovers
from toolkit.launch.machines.coordination import Coordinator, Nodes, Participant
from toolkit.launch.machines.layout import Machines
from toolkit.reliability.notifications.notify import notify
from toolkit.reliability.oom import oom_kills, ran_out_since
from toolkit.reliability.restart_policy import Decision, after_failure, reset_counters
from toolkit.reliability.stop import LAUNCHER_VARIABLE, stop_signals
from toolkit.run.attempts.crash_record import CrashHint, conclude_attempt, record_crash
from toolkit.run.attempts.records import explain_last, read_attempts
from toolkit.run.disk_reserve import give_up_reserve, keep_reserve
from toolkit.run.events import note_event
from toolkit.run.failure.classes import KILLED, OOM_KILLED
from toolkit.run.failure.full_disk import note_full_disk
from toolkit.run.failure.log_end import first_cause
from toolkit.run.failure.records import first_failure, silent_record, write_first
from toolkit.run.fence import is_fenced
from toolkit.run.folder_trust import python_path
from toolkit.run.kept_code.module_names import module_in
from toolkit.run.records.ranks import read_ranks
from toolkit.run.run_dir import RunDir
from toolkit.system.world import NONCE_VARIABLE

#: Statuses of workers that have recorded why they ended.
_EXPLAINED = (
    0,
    ExitCode.WRONG_INPUT,
    ExitCode.FAILED,
    ExitCode.YIELDED,
    ExitCode.FENCED,
    ExitCode.HUNG,
    ExitCode.INTERRUPTED,
)

#: Seconds that the other ranks get to end after one has failed.
_GRACE_S = 20.0
#: The same for ranks that hang or use NCCL: in a collective, they do not notice that a rank has left.
_GRACE_IF_STUCK_S = 3.0
_POLL_S = 0.05
#: Seconds after Ctrl-C in which a SIGINT is the same one, passed on by a program around this one.
_REPEATED_S = 0.5


def launch(run: RunDir, environ: Mapping[str, str], nodes: Nodes, *, quiet: bool = False) -> int:
    """Train a run in processes of these machines and wait for them; return the exit code for the user.

    Rank 0 writes to this terminal unless quiet, the other ranks to their logs. If one fails, the others are
    ended, and all start again if the restart policy allows it. On SIGTERM, SIGUSR2, Ctrl-C and SIGHUP (when
    the terminal is closed), they save and exit. Raises OSError if the run's disk is already full.
    """
    run.logs.mkdir(parents=True, exist_ok=True)
    keep_reserve(run)
    launcher = _Launcher(run, nodes, environ, quiet)
    try:
        if isinstance(nodes, Participant):
            return run_as_worker_node(run, launcher, nodes)
        return run_as_coordinator(run, launcher, nodes)
    finally:
        give_up_reserve(run)


def run_as_coordinator(run: RunDir, launcher: _Launcher, nodes: Nodes) -> int:
    """Start the ranks, and restart them after each failure that allows it. Decides for all nodes."""
    reset_counters(run)
    nodes.note_refused(run)
    while True:
        if launcher.is_asked_to_stop:
            nodes.leave(run, ExitCode.INTERRUPTED)
            return ExitCode.INTERRUPTED
        # The record of an earlier attempt must not explain this one.
        run.failure.unlink(missing_ok=True)
        nonce = f"local-{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
        nodes.start(nonce)
        codes = launcher.start(nonce) + nodes.reports(run, nonce)
        if not any(codes) and not run.result.exists():
            _note_early_end(run, nonce)
            codes = [ExitCode.FAILED]
        decision = _decision(run, nonce, codes)
        wants_stop = launcher.is_asked_to_stop or nodes.wants_stop
        if decision and decision.action == "retry" and not wants_stop and nodes.is_complete:
            note_event(run, "restarted", why=decision.why, exclude=list(decision.exclude))
            sys.stderr.write(f"{decision.why}; starting again\n")
            notify(run, "requeue", decision.why)
            continue
        _leave(run, nodes, nonce, exit_code(codes), decision)
        return exit_code(codes)


def _decision(run: RunDir, nonce: str, codes: Sequence[int]) -> Decision | None:
    """Record how an attempt ended, and decide about a restart; None for one that must not restart."""
    shown = exit_code(codes)
    if shown == 0 or is_fenced(run, nonce):
        return None
    if shown in (ExitCode.INTERRUPTED, ExitCode.WRONG_INPUT):
        # Ranks that have saved (75) have recorded that.
        if shown in codes:
            with suppress(OSError):
                conclude_attempt(run, nonce, shown)
        return None
    code = next(code for code in codes if code not in (0, ExitCode.YIELDED))
    record = partial(record_crash, run, code, nonce=nonce, hint=CrashHint(codes=tuple(codes)))
    try:
        record()
        decision = after_failure(run, load_resolved(run.config, run.job))
        # On a full disk the next attempt would end like this one.
        keep_reserve(run)
        return decision
    except OSError as error:
        why = note_full_disk(run, nonce, error, record)
        sys.stderr.write(f"{why}\n")
        return Decision("stop", why)


def _leave(run: RunDir, nodes: Nodes, nonce: str, code: int, decision: Decision | None) -> None:
    """Tell the other nodes to leave, and the user why the run ended."""
    if isinstance(nodes, Coordinator) and not nodes.is_complete:
        sys.stderr.write(f"{nodes.gone} was lost: start all machines again to continue the run\n")
    nodes.leave(run, code)
    if code not in (0, ExitCode.INTERRUPTED) and _is_of_attempt(run, nonce):
        is_held = decision is not None and decision.action == "hold"
        notify(run, "hold" if is_held else "failure")


def run_as_worker_node(run: RunDir, launcher: _Launcher, nodes: Participant) -> int:
    """Start the ranks of this machine whenever node 0 orders that, until it orders to leave.

    Nothing is started again without node 0: only node 0 knows about the ranks of the other machines.
    """
    code: int = ExitCode.FAILED
    has_reported = False
    while True:
        order = nodes.order()
        if order is None:
            # Node 0 answers once it has a report.
            if launcher.is_asked_to_stop and not has_reported:
                return ExitCode.INTERRUPTED
        elif "leave" in order:
            return _leave_as_ordered(run, nodes, order, code)
        else:
            code, has_reported = _start_as_ordered(run, launcher, nodes, str(order["start"])), True


def _leave_as_ordered(run: RunDir, nodes: Participant, order: Mapping[str, Any], code: int) -> int:
    if not nodes.is_complete:
        sys.stderr.write(f"node 0 on {nodes.leader} was lost: start all machines again to continue the run\n")
        return code
    if order["failure"] is not None and read_json(run.failure) is None:
        write_json(run.failure, order["failure"])
    return int(order["leave"])


def _start_as_ordered(run: RunDir, launcher: _Launcher, nodes: Participant, nonce: str) -> int:
    if not _is_of_attempt(run, nonce):
        run.failure.unlink(missing_ok=True)
    nodes.start(nonce)
    codes = launcher.start(nonce)
    nodes.report(run, nonce, codes, wants_stop=launcher.is_asked_to_stop)
    return exit_code(codes) or ExitCode.FAILED


def _is_of_attempt(run: RunDir, nonce: str) -> bool:
    """Whether failure.json is from this attempt: one that another attempt has replaced reports nothing."""
    return (read_json(run.failure) or {}).get("nonce") == nonce


def prepare(config: str, overrides: Sequence[str], environ: Mapping[str, str], output: TextIO) -> int:
    """Build the prepared data of an experiment in a child process; return its exit code.

    output  file for its messages
    """
    command = [sys.executable, "-P", "-m", "toolkit.training.worker", "--prepare", config, *overrides]
    return subprocess.run(command, env=dict(environ), stdout=output, check=False).returncode


def rank_environment(
    run: RunDir, nonce: str, local_rank: int, machines: Machines, environ: Mapping[str, str]
) -> dict[str, str]:
    """The environment of one rank of this machine; the code is the run's own. Raises UserError."""
    return {
        # torch warns on each connection if a host has no name for an address.
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        **environ,
        "RANK": str(machines.own_ranks[local_rank]),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(machines.size),
        "LOCAL_WORLD_SIZE": str(machines.count),
        "GROUP_RANK": str(machines.node),
        "GROUP_WORLD_SIZE": str(len(machines.counts)),
        NONCE_VARIABLE: nonce,
        LAUNCHER_VARIABLE: str(os.getpid()),
        "PYTHONPATH": python_path(run, environ.get("PYTHONPATH")),
        "PYTHONUNBUFFERED": "1",
    }


class _Launcher:
    """Starts the ranks of a run, passes signals on to them, and waits for them."""

    def __init__(self, run: RunDir, nodes: Nodes, environ: Mapping[str, str], quiet: bool) -> None:
        self._run = run
        self._nodes = nodes
        self._machines = nodes.machines
        self._environ = environ
        self._quiet = quiet
        self._ranks: list[subprocess.Popen[bytes]] = []
        self._oom_kills: int | None = None
        self._first_interrupt = math.inf
        self._is_interrupted_again = False
        self.is_asked_to_stop = False
        self._first_signal: int | None = None
        self._stop_signals = stop_signals()
        for number in self._stop_signals:
            signal.signal(number, self._forward)
        # Until now these may be blocked, and SIGUSR1 may interrupt (toolkit.reliability.early_signals).
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*self._stop_signals, signal.SIGUSR1))

    def start(self, nonce: str) -> list[int]:
        """Start the ranks of this machine, unless asked to stop; wait, and return their exit statuses."""
        with ExitStack() as stack:
            # Signals are blocked until there are ranks to forward them to. The ranks inherit the mask: each
            # unblocks them once it can save and leave, which is seconds later, after torch is imported.
            signal.pthread_sigmask(signal.SIG_BLOCK, self._stop_signals)
            try:
                if self.is_asked_to_stop:
                    return [ExitCode.INTERRUPTED]
                self._oom_kills = oom_kills()
                self._ranks = [self._start_rank(nonce, rank, stack) for rank in range(self._machines.count)]
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, self._stop_signals)
            return self._wait(nonce)

    def _start_rank(self, nonce: str, local_rank: int, stack: ExitStack) -> subprocess.Popen[bytes]:
        output = None
        rank = self._machines.own_ranks[local_rank]
        if rank > 0 or self._quiet:
            output = stack.enter_context(self._run.log(nonce, rank).open("ab"))
        module = module_in(self._run, "toolkit.launch.rank_main") or "toolkit.launch.rank_main"
        return subprocess.Popen(
            # -P: otherwise Python would prefer code in the working directory to the run's own code.
            [sys.executable, "-P", "-m", module, str(self._run.path)],
            env=rank_environment(self._run, nonce, local_rank, self._machines, self._environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self.is_asked_to_stop = True
        self._first_signal = self._first_signal or number
        if number == signal.SIGINT:
            now = time.monotonic()
            self._first_interrupt = min(self._first_interrupt, now)
            self._is_interrupted_again = now - self._first_interrupt > _REPEATED_S
            # Ctrl-C may reach the ranks as well: passed on as it is, it would count twice there.
            number = signal.SIGTERM
        self._send(number)

    def _send(self, number: int) -> None:
        for process in self._ranks:
            with suppress(ProcessLookupError):
                process.send_signal(number)

    def _wait(self, nonce: str) -> list[int]:
        """Wait for all ranks; after a failure give the others some seconds, then kill them."""
        deadline = None
        while True:
            if self._is_interrupted_again:
                # Repeated, because a rank ends at its second SIGINT.
                self._send(signal.SIGINT)
            codes = [process.poll() for process in self._ranks]
            has_failed = any(code not in (None, 0, ExitCode.YIELDED) for code in codes)
            # Called even without a failure here, because it handles the messages of the other nodes.
            if self._nodes.has_failed(self._run, nonce) | has_failed and deadline is None:
                deadline = time.monotonic() + _grace_s(self._run, nonce, codes)
                is_oom = ran_out_since(self._oom_kills)
                _note_silent(self._run, nonce, codes, self._machines.own_ranks.start, is_oom=is_oom)
                self._nodes.fail()
            if None not in codes:
                end_leftovers(self._run, nonce, self._machines.own_ranks, lambda: self._is_interrupted_again)
                if self._first_signal == signal.SIGINT and self._machines.node == 0:
                    _note_interrupt(self._run, nonce)
                return [process.wait() for process in self._ranks]
            if deadline is not None and time.monotonic() > deadline:
                for process in self._ranks:
                    process.kill()
            time.sleep(_POLL_S)


def _grace_s(run: RunDir, nonce: str, codes: Sequence[int | None]) -> float:
    """Seconds that the ranks which are still there get to end after one has failed."""
    if ExitCode.HUNG in codes:
        return _GRACE_IF_STUCK_S
    uses_nccl = any(rank.gpu for rank in read_ranks(run, nonce))
    # All ranks raise that error, and rank 0 first finishes the save that it writes.
    is_of_all = (first_failure(run, nonce) or {}).get("class") == "diverged"
    return _GRACE_IF_STUCK_S if uses_nccl and not is_of_all else _GRACE_S


def exit_code(returncodes: Sequence[int]) -> int:
    """The exit code for the user, from the exit statuses of the ranks: 0, 2, 4 or 130."""
    failed = [code for code in returncodes if code not in (0, ExitCode.YIELDED)]
    if ExitCode.INTERRUPTED in failed:
        return ExitCode.INTERRUPTED
    if failed:
        return ExitCode.WRONG_INPUT if ExitCode.WRONG_INPUT in failed else ExitCode.FAILED
    return ExitCode.INTERRUPTED if ExitCode.YIELDED in returncodes else 0


def _note_interrupt(run: RunDir, nonce: str) -> None:
    """Record SIGINT as the reason of an attempt's stop: its ranks got SIGTERM instead."""
    last = read_attempts(run)[-1:]
    if [(each.nonce, each.why) for each in last] == [(nonce, signal.SIGTERM.name)]:
        explain_last(run, signal.SIGINT.name)


def _note_early_end(run: RunDir, nonce: str) -> None:
    """Record that all ranks have ended with 0, and left neither a result nor a reason."""
    what = "your code ended the ranks with status 0 before the run had finished, as os._exit(0) does"
    record = silent_record(run, nonce, "exception", what, 0, socket.gethostname())
    write_first(run, {**record, "advice": "Let the code return, or raise an exception."})


def _note_silent(
    run: RunDir, nonce: str, codes: Sequence[int | None], first_rank: int, *, is_oom: bool
) -> None:
    """Record the first rank that ended without a failure record; prefer one whose log shows the cause.

    is_oom  whether memory ran out on this machine during the attempt
    """
    silent = {
        rank: code
        for rank, code in enumerate(codes, start=first_rank)
        if code is not None and code not in _EXPLAINED
    }
    if not silent:
        return
    cause = first_cause(run, nonce, silent)
    rank = min(silent) if cause is None else cause[0]
    code = silent[rank]
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
    seen = run.heartbeat(nonce, rank).exists()
    # 1 is Python's status for an error before the worker has started, such as a failed import.
    name = "exception" if code == 1 and not seen else KILLED
    if is_oom and code == -signal.SIGKILL:
        name, how = OOM_KILLED, f"{how}: the machine, or its share of it, ran out of memory"
    host = socket.gethostname()
    write_first(run, silent_record(run, nonce, name, f"rank {rank} {how}", rank, host, code))
