"""Interrupt runs repeatedly at random moments, and compare their results with undisturbed runs.

    PYTHONPATH=tests/toy_workload python -m benchmarks.cluster.soak --interruptions 300 --seed 1

Every start is a world of 1, 2 or 4 local processes. One interruption ends it: SIGKILL or SIGTERM, to
all ranks, to one, or to each at a different moment; SIGKILL at a point inside a save; a frozen rank,
which wakes up during the next start. Some saves find the disk full, and between starts files are damaged:
flipped bits, torn writes, lost files. The next start resumes with another number of processes until the
run has finished; then weights, optimizer, metrics and scores are compared byte for byte.
The exit code is 0 if no run hung and none differs.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import psutil

from tests.faults.story import (
    Run,
    Runs,
    assert_as_if_nothing_had_happened,
    fill_disk,
    flip_a_byte,
    kill,
    remove,
    tear,
    truncate,
    zero_a_page,
)
from tests.toolkit.support.ranks import NO_ANSWER, Ended, Started, await_ranks
from tests.toolkit.workloads.text_classification.tiny_texts import tiny_docnn
from toolkit.checkpoint.verification import verify
from toolkit.config import Experiment
from toolkit.errors import CheckpointError
from toolkit.files import read_json_lines
from toolkit.reliability.fault_injection import SAVE_POINTS
from toolkit.run.attempts.goodput import Goodput, timeline
from toolkit.run.attempts.records import read_attempts
from toolkit.run.events import note_event
from toolkit.run.phases import TRAINING_PHASES
from toolkit.run.run_dir import RunDir

SIZES = (1, 2, 4)
SAVE_EVERY = 3
#: Seconds in which interrupted ranks must end.
HANG_S = 90.0
#: Seconds until the ranks notice that one of them is frozen.
NOTICE_S = 15.0
_FILES = ("model.safetensors", "training.safetensors", "progress.json", "MANIFEST.json")
_DAMAGES: dict[str, Callable[[Path], None]] = {
    "bit flipped": flip_a_byte,
    "page lost": zero_a_page,
    "write torn": truncate,
    "file lost": remove,
}

#: A signal to send: seconds after the interruption began, rank, signal.
Signals = list[tuple[float, int, signal.Signals]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """The end of one start.

    after_s   seconds from the start to the first signal
    signals   to which rank, how much later
    faults    faults that the ranks inject themselves instead
    """

    kind: str
    after_s: float = 0.0
    signals: Signals = field(default_factory=list)
    faults: str = ""

    @property
    def is_graceful(self) -> bool:
        """Whether no step may be lost: all signals are SIGTERM, which leaves time to save."""
        return bool(self.signals) and all(each[2] is signal.SIGTERM for each in self.signals)


@dataclass(slots=True)
class Tally:
    """The results so far."""

    runs: int = 0
    starts: int = 0
    interruptions: Counter[str] = field(default_factory=Counter)
    damages: Counter[str] = field(default_factory=Counter)
    released: int = 0
    hangs: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    failed_stops: list[str] = field(default_factory=list)
    lost_by_stops: list[int] = field(default_factory=list)
    lost_by_kills: list[int] = field(default_factory=list)
    unaccounted: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    went: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        complaints = self.hangs + self.differing + self.failed_stops + self.unaccounted + self.orphans
        return not complaints and not any(self.lost_by_stops)


class Soak:
    """Runs that are interrupted, and the tally of the results."""

    def __init__(self, folder: Path, seed: int, *, epochs: int = 16, say: Callable[[str], None]) -> None:
        self._choice = random.Random(seed)
        self._runs = Runs(folder / "runs")
        self._say = say
        self.tally = Tally()
        # Each experiment has bucketing by length and dropout; only `exact` promises the same bytes.
        settings = ("train.reduction=exact", f"checkpoint.every_steps={SAVE_EVERY}", f"train.epochs={epochs}")
        # No launcher ends the other ranks if one dies before the rendezvous.
        watched = (
            f"train.hang_timeout_s={NOTICE_S}",
            "train.rendezvous_timeout_s=15",
            "train.log_per_epoch=8",
        )
        self._experiments = [
            tiny_docnn(folder / "data", *settings, *watched, *more)
            for more in (
                (),
                ("train.logical_ranks=4", "train.accumulation=2", "seed=1"),
                ("optimizer.kind=sgd", "optimizer.momentum=0.9", "train.clip_norm=0.5", "seed=2"),
            )
        ]
        self._usual_s = 1.0
        self._frozen: list[Started] = []

    def interrupt(self, interruptions: int) -> Tally:
        """Run until that many interruptions have happened and the last run has finished."""
        began = time.monotonic()
        for experiment in self._experiments:
            started = time.monotonic()
            self._undisturbed(experiment)
            # The first run has started the fork server of all ranks too.
            self._usual_s = time.monotonic() - started
        while sum(self.tally.interruptions.values()) < interruptions:
            experiment = self._experiments[self.tally.runs % len(self._experiments)]
            self._one_run(experiment, interruptions)
        self.tally.seconds = time.monotonic() - began
        self.tally.orphans.extend(_orphans())
        return self.tally

    def _one_run(self, experiment: Experiment, interruptions: int) -> None:
        # As under Slurm, all starts of a run have one job id.
        run = self._runs.run(experiment, job="soak")
        self.tally.runs += 1
        while not run.folder.result.exists():
            is_enough = sum(self.tally.interruptions.values()) >= interruptions
            size = self._choice.choice(SIZES)
            planned = None if is_enough else self._plan(run.folder, size)
            if not self._start(run, size, planned):
                return
            if not run.folder.result.exists() and self._choice.random() < 0.3:
                self._damage(run.folder)
        if any(end.error == NO_ANSWER for end in self._wake_frozen()):
            self._complain(self.tally.hangs, run, "a rank that was frozen does not leave")
        try:
            assert_as_if_nothing_had_happened(run, self._undisturbed(experiment))
        except AssertionError as difference:
            self._complain(self.tally.differing, run, str(difference).splitlines()[0])
        else:
            self._account(run)
            shutil.rmtree(run.folder.path.parent)
        self._say(f"run {self.tally.runs}: {sum(self.tally.interruptions.values())} interruptions so far")

    def _undisturbed(self, experiment: Experiment) -> Run:
        """Run the experiment without interruptions, with a watchdog that allows for a slow machine."""
        train = replace(experiment.train, hang_timeout_s=HANG_S)
        return self._runs.undisturbed(replace(experiment, train=train))

    def _account(self, run: Run) -> None:
        """Add up the parts of the run's time, and check that they are its wall time."""
        found = sum((each.spent for each in timeline(run.folder, time.time())), Goodput())
        self.tally.went.update(asdict(found))
        starts = read_attempts(run.folder)
        wall_s = (starts[-1].time_end or 0.0) - (starts[0].process_start or 0.0)
        if abs(found.total - wall_s) > 0.1:
            self._complain(self.tally.unaccounted, run, f"{found} is {found.total:.1f} s of {wall_s:.1f} s")

    # ---- one start

    def _plan(self, run: RunDir, size: int) -> Interruption:
        """Choose the interruption of a start, at any time from its first line of code to after its end."""
        choice = self._choice
        # In half of the cases soon after the start, otherwise anywhere until the end.
        after_s = choice.uniform(0.05, choice.choice((0.4, 0.8))) * self._usual_s
        everyone = range(size)
        one = choice.randrange(size)
        skewed = [choice.uniform(0, 0.3) for _ in everyone]
        term, kill_9 = signal.SIGTERM, signal.SIGKILL
        signals: dict[str, Signals] = {
            "kill all": [(0.0, rank, kill_9) for rank in everyone],
            "kill one": [(0.0, one, kill_9)],
            "stop all": [(0.0, rank, term) for rank in everyone],
            "stop one": [(0.0, one, term)],
            "stop skewed": [(skewed[rank], rank, term) for rank in everyone],
            "stop twice": [(late, rank, term) for late in (0.0, skewed[one]) for rank in everyone],
            "stop, then kill": [
                (late, rank, number)
                for late, number in ((0.0, term), (skewed[one], kill_9))
                for rank in everyone
            ],
        }
        kind = choice.choice([*signals, "kill in a save", "kill in a phase"])
        if size > 1 and choice.random() < 0.04:
            return Interruption(kind="freeze one", after_s=after_s, signals=[(0.0, one, signal.SIGSTOP)])
        step = (max(run.checkpoint_steps(), default=0) // SAVE_EVERY + choice.randint(1, 9)) * SAVE_EVERY
        faults = [fill_disk(step=step)] if choice.random() < 0.2 else []
        if kind == "kill in a save":
            faults.append(kill(rank=0, step=step + SAVE_EVERY, at=choice.choice(SAVE_POINTS)))
        elif kind == "kill in a phase":
            faults.append(
                kill(rank=one, step=step + choice.randrange(SAVE_EVERY), at=choice.choice(TRAINING_PHASES))
            )
        return Interruption(
            kind=kind, after_s=after_s, signals=sorted(signals.get(kind, [])), faults="; ".join(faults)
        )

    def _start(self, run: Run, size: int, planned: Interruption | None) -> bool:
        """Start the run once and interrupt it; return False if it hung or failed with CheckpointError."""
        self.tally.starts += 1
        began, done_before = time.monotonic(), _done(run.folder)
        started = run.set_off(size, planned.faults if planned else "")
        # Frozen ranks of an earlier start wake up during this one.
        _send_to(self._frozen, signal.SIGCONT)
        if planned is not None:
            _send(started, planned)
        frozen = _frozen(started, planned)
        ended = _await([rank for rank in started if rank not in frozen])
        thawed, self._frozen = self._wake_frozen(), frozen
        if any(end.error == NO_ANSWER for end in (*ended, *thawed)):
            self._complain(self.tally.hangs, run, f"{planned} on {size} processes: {ended}")
            return False
        if any(end.error.startswith("CheckpointError") for end in ended):
            self._complain(self.tally.failed_stops, run, f"{planned} on {size} processes: {ended}")
            return False
        if run.folder.result.exists():
            # The machine's load changes: an interruption must not come long after the end.
            self._usual_s = min(self._usual_s, 1.5 * (time.monotonic() - began))
        elif planned is not None:
            self._judge(run, planned, ended, done_before)
            if _done(run.folder) == done_before:
                self._usual_s *= 1.1
        if any(end.error.startswith("NoProgress") for end in ended):
            # As `stk resume` does for a person.
            note_event(run.folder, "released")
            self.tally.released += 1
        return True

    def _wake_frozen(self) -> list[Ended]:
        """Wake the frozen ranks up; return how they ended."""
        _send_to(self._frozen, signal.SIGCONT)
        ended, self._frozen = _await(self._frozen), []
        return ended

    def _judge(self, run: Run, planned: Interruption, ended: Sequence[Ended], done_before: int) -> None:
        """Count the interruption and the steps that it cost."""
        self.tally.interruptions[planned.kind] += 1
        done = _done(run.folder)
        saved = max(
            (step for step in run.folder.checkpoint_steps() if _is_sound(run.folder, step)), default=0
        )
        if not planned.is_graceful:
            # A start that was killed early has not yet dropped the lines of the steps that it repeats.
            self.tally.lost_by_kills.append(max(0, max(done_before, done) - saved))
        elif all(end.value == "yielded" for end in ended):
            self.tally.lost_by_stops.append(max(0, done - saved))
        elif not _ended_without_handler(ended) and not _is_held(ended):
            self._complain(self.tally.failed_stops, run, f"{planned}: {ended}")

    # ---- between starts

    def _damage(self, run: RunDir) -> None:
        """Damage the newest checkpoint if an older one is good, or the files of JSON lines."""
        sound = [step for step in run.checkpoint_steps() if _is_sound(run, step)]
        what = self._choice.choice([*_DAMAGES, "line torn", "stale folder"])
        if what == "line torn":
            for file in (run.metrics, run.events, run.attempts, run.step_records):
                tear(file)
        elif what == "stale folder" and sound:
            # Only beside a good checkpoint: a run with bad checkpoints only rightly refuses to start.
            for name in (".step_00000001.tmp", "step_99999999"):
                (run.checkpoints / name).mkdir(parents=True, exist_ok=True)
        elif len(sound) >= 2:
            _DAMAGES[what](run.checkpoint(sound[-1]) / self._choice.choice(_FILES))
        else:
            return
        self.tally.damages[what] += 1

    def _complain(self, where: list[str], run: Run, what: str) -> None:
        where.append(f"{run.folder.path}: {what}")
        self._say(f"!!! {where[-1]}")


def _send(started: Sequence[Started], planned: Interruption) -> None:
    """Send the signals at their moments to the ranks that still run."""
    began = time.monotonic() + planned.after_s
    for late, rank, number in planned.signals:
        # The only sleep: the moment of the signal is random.
        time.sleep(max(0.0, began + late - time.monotonic()))
        _send_to([started[rank]], number)


def _frozen(started: Sequence[Started], planned: Interruption | None) -> list[Started]:
    """Return the ranks that were frozen before their end: they do not end by themselves."""
    signals = planned.signals if planned else []
    ranks = {rank for _, rank, number in signals if number is signal.SIGSTOP}
    return [started[rank] for rank in ranks if started[rank].process.is_alive()]


def _send_to(started: Sequence[Started], number: signal.Signals) -> None:
    for rank in started:
        rank.send_signal(number)


def _await(started: Sequence[Started]) -> list[Ended]:
    """Return how the ranks ended; ranks that hang write their stacks to their logs first."""
    deadline = time.monotonic() + HANG_S
    for rank in started:
        rank.process.join(max(0.0, deadline - time.monotonic()))
    _send_to([rank for rank in started if rank.process.is_alive()], signal.SIGABRT)
    return await_ranks(started, 5.0)


def _ended_without_handler(ended: Sequence[Ended]) -> bool:
    """Whether a rank had no signal handler yet; a launcher would have delayed the signal."""
    return any(end.exit_status == -signal.SIGTERM for end in ended)


def _is_held(ended: Sequence[Ended]) -> bool:
    return any(end.error.startswith("NoProgress") for end in ended)


def _done(run: RunDir) -> int:
    """Return the last step in metrics.jsonl; 0 without one."""
    return max((line["step"] for line in read_json_lines(run.metrics)), default=0)


def _is_sound(run: RunDir, step: int) -> bool:
    try:
        verify(run.checkpoint(step))
    except CheckpointError:
        return False
    return True


def _orphans() -> list[str]:
    """Describe the ranks that still run: children of the fork server."""
    servers = [child for child in psutil.Process().children() if _is_fork_server(child)]
    return [f"a process is left: {rank}" for server in servers for rank in server.children()]


def _is_fork_server(process: psutil.Process) -> bool:
    try:
        return "forkserver" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        # A child that has just ended.
        return False


def show(tally: Tally) -> str:
    """Return the tally as text."""
    total = sum(tally.interruptions.values())
    lines = [
        f"{total} interruptions of {tally.runs} runs in {tally.starts} starts, {tally.seconds:.0f} s",
        *(f"  {count:5d}  {kind}" for kind, count in tally.interruptions.most_common()),
        f"{sum(tally.damages.values())} damages between starts",
        *(f"  {count:5d}  {kind}" for kind, count in tally.damages.most_common()),
        f"hangs              {len(tally.hangs)}",
        f"differing runs     {len(tally.differing)}",
        f"stops that failed  {len(tally.failed_stops)}",
        f"lost by a stop     at most {max(tally.lost_by_stops, default=0)} steps",
        f"lost by a kill     at most {max(tally.lost_by_kills, default=0)} steps, "
        f"{sum(tally.lost_by_kills) / max(1, len(tally.lost_by_kills)):.1f} on average, "
        f"saved every {SAVE_EVERY}",
        f"held and released  {tally.released}",
        f"where time went    {', '.join(f'{name} {share:.0%}' for name, share in _shares(tally.went))}",
    ]
    complaints = tally.hangs + tally.differing + tally.failed_stops + tally.unaccounted + tally.orphans
    return "\n".join([*lines, *complaints])


def _shares(went: Counter[str]) -> list[tuple[str, float]]:
    whole = went.total() or 1.0
    return [(name, seconds / whole) for name, seconds in went.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interruptions", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="keep the runs that differ or hang here")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="soak."))
    folder.mkdir(parents=True, exist_ok=True)
    soak = Soak(folder, arguments.seed, say=lambda line: print(line, file=sys.stderr, flush=True))
    tally = soak.interrupt(arguments.interruptions)
    if arguments.json:
        facts = {name: getattr(tally, name) for name in Tally.__slots__}
        print(json.dumps(facts))
    else:
        print(show(tally))
    if tally.is_clean and arguments.folder is None:
        shutil.rmtree(folder)
    return 0 if tally.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
