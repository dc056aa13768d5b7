"""Slurm's part played by this process: its signals, in its order, to local ranks.

The sequences are those of Slurm 22.05, recorded on a real cluster. Every rank is frozen (SIGSTOP) in the
middle of a chosen step and gets its signals there, so that each drill strikes at the same place.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from slurm.drill.rows import Digest, Row, digests, is_same, signals_seen
from slurm.drill.task import STRIDE
from slurm.topology import scrub
from toolkit.attempts.ledger import read_attempts
from toolkit.config import run_id
from toolkit.config.schema import Experiment
from toolkit.create import create_run
from toolkit.errors import RunFailed
from toolkit.failure.records import tell_failure
from toolkit.faults import VARIABLE
from toolkit.files import read_json
from toolkit.launch import rank_environment
from toolkit.machines.layout import Machines
from toolkit.rundir import RunDir

TERM, CONT, KILL, WARN = signal.SIGTERM, signal.SIGCONT, signal.SIGKILL, signal.SIGUSR2

#: Slurm's default KillWait: what a rank that was asked to leave has left to live.
KILL_WAIT_S = 30.0
#: How long this waits for a step to be reached: the data may have to be prepared first.
_PATIENCE_S = 1800.0
_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One interruption.

    signals    what the ranks get at once
    later      what those that are still there get when the grace period is over
    grace_s    how long that is
    only_last  whether the last rank alone gets them
    """

    what: str
    signals: tuple[signal.Signals, ...]
    later: tuple[signal.Signals, ...] = ()
    grace_s: float = 0.0
    only_last: bool = False

    @property
    def is_graceful(self) -> bool:
        """Whether the ranks are asked, so that nothing may be lost."""
        return KILL not in self.signals


SCENES = (
    Scene(what="preempted, with grace", signals=(TERM, CONT), later=(TERM, CONT, TERM), grace_s=10),
    Scene(what="preempted, without grace", signals=(TERM, CONT, TERM)),
    Scene(
        what="warned and preempted, with grace", signals=(WARN, CONT), later=(TERM, CONT, TERM), grace_s=10
    ),
    Scene(what="warned and preempted at once", signals=(CONT, WARN, TERM, CONT, TERM)),
    Scene(what="one rank asked to stop", signals=(TERM, CONT), only_last=True),
    Scene(what="one rank killed (-9)", signals=(KILL,), only_last=True),
    Scene(what="all ranks killed (-9)", signals=(KILL,)),
    # This one on another number of processes, where that gives the same bytes.
    Scene(what="preempted once more", signals=(TERM, CONT)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """One start and how it was interrupted."""

    scene: Scene
    procs: int
    began: float
    struck: float
    left_s: float
    done: int
    first_step: int
    back_s: float | None
    signals: tuple[str, ...]
    fault: str


class Rehearsal:
    """A run in local processes, interrupted scene by scene, beside one to which nothing happens."""

    def __init__(
        self,
        experiment: Experiment,
        folder: Path,
        procs: int,
        say: Callable[[str], None],
        scenes: Sequence[Scene] = SCENES,
    ) -> None:
        self._experiment = experiment
        self._folder = folder
        self._procs = procs
        self._say = say
        self._scenes = scenes
        #: What is left out, and why.
        self.not_tried = ["what only a cluster can do: time limits, requeueing, lost hosts"]
        if procs == 1:
            self.not_tried.append("one rank among several: --procs 2")

    def play(self) -> Iterator[list[Row]]:
        """Yield the rows so far, whenever a start has shown what came of the scene before it.

        Raises RunFailed where the run fails by itself.
        """
        self._say("the undisturbed run")
        undisturbed = self._undisturbed()
        run = create_run(self._experiment, self._folder / "disturbed")
        scenes, sizes = self._programme(run)
        before: _Start | None = None
        rows: list[Row] = []
        for number, (scene, procs) in enumerate(zip(scenes, sizes, strict=True)):
            self._say(scene.what)
            now = self._start(run, scene, procs, end=STRIDE * (number + 1))
            if before is not None:
                rows.append(_row(run, before, now, undisturbed))
                yield rows
            before = now

    def _programme(self, run: RunDir) -> tuple[list[Scene], list[int]]:
        """The scenes and their numbers of processes; the last one only shows what came of the one before."""
        scenes = [scene for scene in self._scenes if self._procs > 1 or not scene.only_last]
        sizes = [self._procs] * len(scenes)
        if self._gives_same_bytes_on_any_number():
            sizes[-1] = 1 if self._procs > 1 else 2
        else:
            self.not_tried.append(
                "another number of processes: only train.reduction=exact gives the same bytes"
            )
        return [*scenes, Scene(what="the end", signals=(TERM, CONT))], [*sizes, self._procs]

    def _gives_same_bytes_on_any_number(self) -> bool:
        train = self._experiment.train
        parts = train.logical_ranks * train.accumulation
        (start, *_) = read_attempts(self._reference)
        is_exact = train.reduction == "exact" or (train.reduction == "auto" and start["device"] == "cpu")
        is_tree = parts & (parts - 1) == 0 and self._procs & (self._procs - 1) == 0
        return is_exact and is_tree and train.logical_ranks > 1

    @property
    def _reference(self) -> RunDir:
        return RunDir(self._folder / "undisturbed" / run_id(self._experiment))

    def _undisturbed(self) -> Mapping[int, Digest]:
        """Train beyond the last interruption without any; the checkpoints' checksums."""
        run = create_run(self._experiment, self._folder / "undisturbed")
        end = STRIDE * (len(self._scenes) + 2)
        with _ranks(run, self._procs, f"term at=forward step={end - 1}") as ranks:
            _wait(ranks, _PATIENCE_S)
        if run.checkpoint_steps()[-1:] != [end]:
            raise RunFailed(_what_failed(run, "the undisturbed run"))
        return digests(run)

    def _start(self, run: RunDir, scene: Scene, procs: int, end: int) -> _Start:
        """Train from where the run stands to a step before or after `end`, and strike there."""
        # A save of its own must lie behind a kill: its writer gets a moment, as it would between the steps
        # of a real model.
        at = end - 1 if scene.is_graceful else end + 2
        faults = f"slow 0.5 at=data step={at} rank=0; stop at=forward step={at}"
        began = time.time()
        with _ranks(run, procs, faults) as ranks:
            _wait_until_frozen(run, ranks)
            struck = time.time()
            fault = self._strike(scene, ranks)
            left_s = time.time() - struck
        start = read_attempts(run)[-1]
        return _Start(
            scene=scene,
            procs=procs,
            began=began,
            struck=struck,
            left_s=left_s,
            done=at + 1 if scene.is_graceful else at,
            first_step=start["first_step"],
            back_s=start.get("first_step_s"),
            signals=signals_seen(run, began) if scene.is_graceful else (),
            fault=fault,
        )

    def _strike(self, scene: Scene, ranks: Sequence[subprocess.Popen[bytes]]) -> str:
        """Send what Slurm would send, and wait as long as it would; what went wrong, if anything."""
        targets = ranks[-1:] if scene.only_last else ranks
        _send(targets, scene.signals)
        _send([rank for rank in ranks if rank not in targets], (CONT,))
        if scene.later and not _wait(ranks, scene.grace_s):
            _send(ranks, scene.later)
        if _wait(ranks, KILL_WAIT_S):
            return ""
        alive = sum(rank.poll() is None for rank in ranks)
        _send(ranks, (KILL,))
        _wait(ranks, KILL_WAIT_S)
        return f"{alive} of {len(ranks)} ranks had to be killed after {scene.grace_s + KILL_WAIT_S:g} s"


def _row(run: RunDir, before: _Start, now: _Start, undisturbed: Mapping[int, Digest]) -> Row:
    """What an interruption came to, as the start after it shows."""
    scene = before.scene
    lost = max(0, before.done - now.first_step)
    fault = before.fault
    if scene.is_graceful and lost and not fault:
        fault = f"{lost} steps lost although it was asked"
    back_s = now.back_s
    return Row(
        what=scene.what,
        processes=f"{before.procs} → {now.procs}",
        signals=before.signals or tuple(each.name.removeprefix("SIG") for each in scene.signals),
        left_s=before.left_s,
        lost_steps=lost,
        back_s=back_s,
        away_s=None if back_s is None else now.began + back_s - before.struck,
        same_bytes=is_same(run, undisturbed, now.first_step),
        fault=fault,
    )


@contextmanager
def _ranks(run: RunDir, procs: int, faults: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The ranks of one start; whatever happens, none of them outlives it."""
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
            with suppress(ProcessLookupError):
                rank.send_signal(number)


def _wait(ranks: Sequence[subprocess.Popen[bytes]], timeout_s: float) -> bool:
    """Wait for all ranks to end; whether they did in time."""
    deadline = time.monotonic() + timeout_s
    while any(rank.poll() is None for rank in ranks):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _wait_until_frozen(run: RunDir, ranks: Sequence[subprocess.Popen[bytes]]) -> None:
    """Return when every rank stands still at the step of its fault. Raises RunFailed."""
    deadline = time.monotonic() + _PATIENCE_S
    while not all(_is_frozen(rank) for rank in ranks):
        if any(rank.poll() is not None for rank in ranks) or time.monotonic() > deadline:
            raise RunFailed(_what_failed(run, "a start of the drill"))
        time.sleep(_POLL_S)


def _is_frozen(rank: subprocess.Popen[bytes]) -> bool:
    try:
        return bool(psutil.Process(rank.pid).status() == psutil.STATUS_STOPPED)
    except psutil.NoSuchProcess:
        return False


def _what_failed(run: RunDir, what: str) -> str:
    failure = read_json(run.failure)
    told = tell_failure(failure) if failure else f"see the logs in {run.logs}"
    return f"{what} failed by itself: {told}"
