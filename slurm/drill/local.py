"""A drill with local ranks, which get Slurm's signals in Slurm's order.

The sequences of signals were recorded on a real cluster with Slurm 22.05. Every rank stops itself (SIGSTOP)
in the middle of a chosen step and gets the signals there, so each drill interrupts at the same place.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from slurm.client.topology import scrub
from slurm.drill.rows import Digest, Row, digests, is_same, signals_seen
from slurm.drill.task import STRIDE
from toolkit.config.schema import Experiment
from toolkit.errors import RunFailed
from toolkit.files import read_json
from toolkit.launch.launcher import rank_environment
from toolkit.launch.machines.layout import Machines
from toolkit.reliability.fault_injection import VARIABLE
from toolkit.run.attempts.records import AttemptRecord, read_attempts
from toolkit.run.create_run import create_run
from toolkit.run.failure.format import format_failure
from toolkit.run.run_dir import RunDir
from toolkit.system.output.amounts import counted

TERM, CONT, KILL, WARN = signal.SIGTERM, signal.SIGCONT, signal.SIGKILL, signal.SIGUSR2

#: Slurm's default KillWait: seconds from the last signal to SIGKILL.
KILL_WAIT_S = 30.0
#: Seconds to wait for a step; the data may have to be prepared first.
_STEP_TIMEOUT_S = 1800.0
_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """One interruption.

    signals    signals that the ranks get at once
    later      signals for ranks that still run after the grace period
    grace_s    seconds of the grace period
    only_last  whether only the last rank gets `signals`
    """

    what: str
    signals: tuple[signal.Signals, ...]
    later: tuple[signal.Signals, ...] = ()
    grace_s: float = 0.0
    only_last: bool = False

    @property
    def is_graceful(self) -> bool:
        """Whether the ranks have time to save, so that no step may be lost."""
        return KILL not in self.signals


INTERRUPTIONS = (
    Interruption(what="preempted, with grace", signals=(TERM, CONT), later=(TERM, CONT, TERM), grace_s=10),
    Interruption(what="preempted, without grace", signals=(TERM, CONT, TERM)),
    Interruption(
        what="warned and preempted, with grace", signals=(WARN, CONT), later=(TERM, CONT, TERM), grace_s=10
    ),
    Interruption(what="warned and preempted at once", signals=(CONT, WARN, TERM, CONT, TERM)),
    Interruption(what="one rank asked to stop", signals=(TERM, CONT), only_last=True),
    Interruption(what="one rank killed (-9)", signals=(KILL,), only_last=True),
    Interruption(what="all ranks killed (-9)", signals=(KILL,)),
    # Runs on another number of processes, if that gives the same bytes.
    Interruption(what="preempted once more", signals=(TERM, CONT)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """One attempt and how it was interrupted."""

    interruption: Interruption
    procs: int
    began: float
    interrupted_at: float
    left_s: float
    done: int
    record: AttemptRecord
    signals: tuple[str, ...]
    fault: str


class LocalDrill:
    """A run in local processes that is interrupted several times, and an undisturbed run."""

    def __init__(self, experiment: Experiment, folder: Path, procs: int, say: Callable[[str], None]) -> None:
        self._experiment = experiment
        self._folder = folder
        self._procs = procs
        self._say = say
        #: Interruptions that are not tried, with reasons.
        self.not_tried = ["what only a cluster can do: time limits, requeueing, lost hosts"]
        if procs == 1:
            self.not_tried.append("one rank among several: --procs 2")

    def run(self) -> Generator[list[Row]]:
        """Yield the rows so far, each time an attempt has shown the effect of the previous interruption.

        Raises RunFailed if the run fails by itself.
        """
        self._say("the undisturbed run")
        reference = create_run(self._experiment, self._folder / "undisturbed")
        undisturbed = self._undisturbed(reference)
        run = create_run(self._experiment, self._folder / "disturbed")
        interruptions, sizes = self._plan(read_attempts(reference)[0])
        before: _Attempt | None = None
        rows: list[Row] = []
        for number, (interruption, procs) in enumerate(zip(interruptions, sizes, strict=True)):
            self._say(interruption.what)
            now = self._start(run, interruption, procs, end=STRIDE * (number + 1))
            if before is not None:
                rows.append(_row(run, before, now, undisturbed))
                yield rows
            before = now

    def _plan(self, undisturbed: AttemptRecord) -> tuple[list[Interruption], list[int]]:
        """Return interruptions and numbers of processes; the last attempt only shows the previous effect."""
        interruptions = [each for each in INTERRUPTIONS if self._procs > 1 or not each.only_last]
        sizes = [self._procs] * len(interruptions)
        train = self._experiment.train
        parts = train.micro_batches
        is_exact = train.reduction == "exact" or (train.reduction == "auto" and undisturbed.device == "cpu")
        is_tree = parts & (parts - 1) == 0 and self._procs & (self._procs - 1) == 0
        if is_exact and is_tree and max(self._procs, 2) <= train.logical_ranks:
            # Any number of processes gives the same bytes.
            sizes[-1] = 1 if self._procs > 1 else 2
        else:
            self.not_tried.append(
                "another number of processes: only train.reduction=exact gives the same bytes"
            )
        return [*interruptions, Interruption(what="the end", signals=(TERM, CONT))], [*sizes, self._procs]

    def _undisturbed(self, run: RunDir) -> Mapping[int, Digest]:
        """Train an undisturbed run beyond the last interruption; return checksums of its checkpoints."""
        end = STRIDE * (len(INTERRUPTIONS) + 2)
        # Pauses after each save, because a save is skipped while the previous one is being written.
        pauses = [f"slow 0.5 at=data step={step} rank=0" for step in range(STRIDE, end, STRIDE)]
        with _ranks(run, self._procs, "; ".join([*pauses, f"term at=forward step={end - 1}"])) as ranks:
            _wait(ranks, _STEP_TIMEOUT_S)
        if run.checkpoint_steps()[-1:] != [end]:
            raise RunFailed(_what_failed(run, "the undisturbed run"))
        return digests(run)

    def _start(self, run: RunDir, interruption: Interruption, procs: int, end: int) -> _Attempt:
        """Train from the newest checkpoint to a step just before or after `end`, and interrupt there."""
        # Before a kill, a save of this attempt must be complete: the pause gives its writer time, as longer
        # steps would.
        at = end - 1 if interruption.is_graceful else end + 2
        faults = f"slow 0.5 at=data step={at} rank=0; stop at=forward step={at}"
        began = time.time()
        with _ranks(run, procs, faults) as ranks:
            _wait_until_frozen(run, ranks)
            interrupted_at = time.time()
            fault = self._interrupt(interruption, ranks)
            left_s = time.time() - interrupted_at
        return _Attempt(
            interruption=interruption,
            procs=procs,
            began=began,
            interrupted_at=interrupted_at,
            left_s=left_s,
            done=at + 1 if interruption.is_graceful else at,
            record=read_attempts(run)[-1],
            signals=signals_seen(run, began) if interruption.is_graceful else (),
            fault=fault,
        )

    def _interrupt(self, interruption: Interruption, ranks: Sequence[subprocess.Popen[bytes]]) -> str:
        """Send the signals and wait as long as Slurm does; return a fault if ranks had to be killed."""
        targets = ranks[-1:] if interruption.only_last else ranks
        _send(targets, interruption.signals)
        _send([rank for rank in ranks if rank not in targets], (CONT,))
        if interruption.later and not _wait(ranks, interruption.grace_s):
            _send(ranks, interruption.later)
        if _wait(ranks, KILL_WAIT_S):
            return ""
        alive = sum(rank.poll() is None for rank in ranks)
        _send(ranks, (KILL,))
        _wait(ranks, KILL_WAIT_S)
        return (
            f"{alive} of {len(ranks)} ranks had to be killed after {interruption.grace_s + KILL_WAIT_S:g} s"
        )


def _row(run: RunDir, before: _Attempt, now: _Attempt, undisturbed: Mapping[int, Digest]) -> Row:
    """Return the row of an interruption, from the attempt before and after it."""
    interruption = before.interruption
    first_step, back_s = now.record.first_step or 0, now.record.first_step_s
    lost = max(0, before.done - first_step)
    fault = before.fault
    if interruption.is_graceful and lost and not fault:
        fault = f"{counted(lost, 'step')} lost although it was asked to save"
    return Row(
        what=interruption.what,
        processes=f"{before.procs} → {now.procs}",
        signals=before.signals or tuple(each.name.removeprefix("SIG") for each in interruption.signals),
        left_s=before.left_s,
        lost_steps=lost,
        back_s=back_s,
        away_s=None if back_s is None else now.began + back_s - before.interrupted_at,
        same_bytes=is_same(run, undisturbed, first_step),
        fault=fault,
    )


@contextmanager
def _ranks(run: RunDir, procs: int, faults: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start the ranks of one attempt; kill those that still run at the end."""
    nonce = f"drill-{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
    run.logs.mkdir(parents=True, exist_ok=True)
    ranks: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(procs):
            with open(run.log(nonce, rank), "ab") as log:
                ranks.append(
                    subprocess.Popen(
                        [sys.executable, "-P", "-m", "slurm.drill.rank", str(run.path)],
                        env={
                            **rank_environment(run, nonce, rank, Machines.alone(procs), scrub()),
                            VARIABLE: faults,
                        },
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                    )
                )
        yield ranks
    finally:
        for process in ranks:
            process.kill()
            process.wait()


def _send(ranks: Sequence[subprocess.Popen[bytes]], numbers: Sequence[signal.Signals]) -> None:
    for number in numbers:
        for rank in ranks:
            rank.send_signal(number)


def _wait(ranks: Sequence[subprocess.Popen[bytes]], timeout_s: float) -> bool:
    """Wait for all ranks to end; return whether they did in time."""
    deadline = time.monotonic() + timeout_s
    while any(rank.poll() is None for rank in ranks):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _wait_until_frozen(run: RunDir, ranks: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait until every rank has stopped at the step of its fault. Raises RunFailed."""
    deadline = time.monotonic() + _STEP_TIMEOUT_S
    while not all(_is_frozen(rank) for rank in ranks):
        if any(rank.poll() is not None for rank in ranks) or time.monotonic() > deadline:
            raise RunFailed(_what_failed(run, "an attempt of the drill"))
        time.sleep(_POLL_S)


def _is_frozen(rank: subprocess.Popen[bytes]) -> bool:
    try:
        return bool(psutil.Process(rank.pid).status() == psutil.STATUS_STOPPED)
    except psutil.NoSuchProcess:
        return False


def _what_failed(run: RunDir, what: str) -> str:
    failure = read_json(run.failure)
    why = format_failure(failure) if failure else f"see the logs in {run.logs}"
    return f"{what} failed without being interrupted: {why}"
