"""A run and what is done to it, told as sentences.

    run = runs.run()
    run.start(2, kill(rank=1, step=5))
    run.start(4, preempt_at(9))
    run.finish(1)
    assert_as_if_nothing_had_happened(run, undisturbed)

Every attempt is a world of real processes, forked from a server that has imported torch once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from stk_toy.texts.task import TextsTask

from tests.toolkit.support.ranks import NO_ANSWER, Ended, Started, await_ranks, start_ranks
from tests.toolkit.support.tiny import assert_equal_runs
from toolkit.config import Experiment
from toolkit.files import append_json_line, read_json_lines
from toolkit.reliability import fault_injection as faults
from toolkit.reliability.stop import StopFlag
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.training import worker
from toolkit.training.context import TrainContext
from toolkit.training.step import take_step

# ---- what can happen while a run trains


def preempt_at(step: int, *, rank: int | None = None, at: str = "forward") -> str:
    """SIGTERM while the step after so many is at work, to every rank or to one only."""
    return _fault("term", at, step, rank)


def kill(*, rank: int, step: int, at: str = "backward") -> str:
    """SIGKILL to one rank in the middle of a step."""
    return _fault("kill", at, step, rank)


def kill_during_save(point: str, *, step: int) -> str:
    """SIGKILL to the rank that saves, at a point of toolkit.reliability.fault_injection.SAVE_POINTS."""
    return f"{wait_for_the_writer(step - 1)}; {_fault('kill', f'save:{point}', step, 0)}"


def preempt_during_save(point: str, *, step: int) -> str:
    """SIGTERM to the rank that saves, at a point of toolkit.reliability.fault_injection.SAVE_POINTS."""
    return f"{wait_for_the_writer(step - 1)}; {_fault('term', f'save:{point}', step, 0)}"


def fill_disk(*, step: int, point: str = "write") -> str:
    """No space left on the device, in one save."""
    return f"{wait_for_the_writer(step - 1)}; {_fault('enospc', f'save:{point}', step, 0)}"


def wait_for_the_writer(step: int) -> str:
    """Time for the save of the step before to reach the disk.

    A save is left out while the one before is being written, and steps take but milliseconds here.
    """
    return _fault("slow 0.5", "data", step, 0)


def freeze(*, rank: int, step: int, at: str = "data") -> str:
    """SIGSTOP to one rank: all its threads stand still."""
    return _fault("stop", at, step, rank)


def lose_the_loss(*, step: int, rank: int = 0) -> str:
    """The loss of one micro-batch is not a number."""
    return _fault("nan", "forward", step, rank)


def _fault(action: str, at: str, step: int, rank: int | None) -> str:
    fault = f"{action} at={at} step={step}"
    return fault if rank is None else f"{fault} rank={rank}"


# ---- what can happen to its files


def flip_a_byte(file: Path, offset: int | None = None) -> None:
    """Change one bit of a file; in its middle unless an offset says where."""
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2 if offset is None else offset] ^= 4
    file.write_bytes(raw)


def zero_a_page(file: Path) -> None:
    """What a lost page looks like: its end is zeros."""
    raw = file.read_bytes()
    file.write_bytes(raw[: len(raw) // 2] + bytes(len(raw) - len(raw) // 2))


def truncate(file: Path) -> None:
    """Lose the end of a file."""
    os.truncate(file, file.stat().st_size // 2)


def remove(file: Path) -> None:
    """Lose a file."""
    file.unlink()


def tear(file: Path) -> None:
    """A line whose writer was killed in the middle of it."""
    with open(file, "ab") as stream:
        stream.write(b'{"time": 17634')


# ---- the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """How a rank of one attempt behaves, apart from its faults.

    journal    file in which every micro-batch is noted; None for none
    early      SIGTERM comes while this rank prepares the data, and the others wait for it
    job        the scheduler's name for what starts it, over and over; empty: nobody's
    restart    how often that was started before
    """

    faults: str = ""
    journal: Path | None = None
    early: bool = False
    job: str = ""
    restart: int = 0


def train_rank(world: World, path: Path, rank: Rank) -> str:
    """Train as one rank of a launcher's start: with its signals, its faults and its exit."""
    os.environ[faults.VARIABLE] = rank.faults
    stop = StopFlag().install(signal.SIGTERM, signal.SIGINT)
    with ExitStack() as stack:
        # Drawing takes longer than all of this training, and the report has tests of its own.
        stack.enter_context(patch("toolkit.training.attempt.finalize._report"))
        if rank.journal is not None:
            stack.enter_context(patch("toolkit.training.step.take_step._pass", _journalling(rank.journal)))
        if rank.early:
            stack.enter_context(patch.object(TextsTask, "prepare", _interrupted_prepare()))
        return worker.run_attempt(
            RunDir(path), replace(world, job=rank.job, restart=rank.restart), stop
        ).value


def _interrupted_prepare() -> Any:
    prepare = TextsTask.prepare

    def interrupted(experiment: Experiment, report: Any = None) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        return prepare(experiment, report)

    return interrupted


def _journalling(journal: Path) -> Any:
    one_pass = take_step._pass

    def note(context: TrainContext, sync: Any, plan: Any, position: int, numbers: Any, *, last: bool) -> None:
        one_pass(context, sync, plan, position, numbers, last=last)
        samples = [int(index) for index in plan.micro_batches_of(position, numbers)]
        line = {"step": context.state.progress.step, "number": numbers[0], "samples": samples}
        append_json_line(journal, line)

    return note


def wake_up(frozen: Started) -> Ended:
    """SIGCONT to a frozen rank; how it ended."""
    frozen.send_signal(signal.SIGCONT)
    (ended,) = await_ranks([frozen])
    return ended


class Run:
    """A run under test."""

    def __init__(self, folder: RunDir, rank: Rank) -> None:
        self.folder = folder
        self._rank = rank
        self._starts = 0

    def start(self, size: int, *what: str, **rank: Any) -> list[Ended]:
        """One attempt of so many processes, to which these faults happen; how each rank ended."""
        return await_ranks(self.set_off(size, *what, **rank))

    def set_off(self, size: int, *what: str, **rank: Any) -> list[Started]:
        """The same, not waited for."""
        how = replace(self._rank, faults="; ".join(what), restart=self._starts, **rank)
        self._starts += 1
        return start_ranks(size, train_rank, self.folder.path, how)

    def yields(self, size: int, *what: str, **rank: Any) -> int:
        """An attempt in which all ranks save and leave; the step that they leave after."""
        ended = self.start(size, *what, **rank)
        assert [(end.value, end.error) for end in ended] == [("yielded", "")] * size, ended
        return self.folder.checkpoint_steps()[-1]

    def breaks(self, size: int, *what: str) -> list[Ended]:
        """An attempt that ends without all its ranks finishing or saving."""
        ended = self.start(size, *what)
        assert not any(end.value == "finished" for end in ended), ended
        assert any(end.error for end in ended), "nothing happened to it"
        assert not any(end.error == NO_ANSWER for end in ended), "it hangs"
        return ended

    def freezes(self, size: int, rank: int, step: int) -> Started:
        """An attempt of which one rank freezes, and which the others give up; the frozen one."""
        started = self.set_off(size, freeze(rank=rank, step=step))
        frozen = started.pop(rank)
        for end in await_ranks(started):
            assert end.error not in ("", NO_ANSWER), end
        assert frozen.process.is_alive()
        return frozen

    def finish(self, size: int, *what: str, **rank: Any) -> None:
        """An attempt that trains to the end."""
        ended = self.start(size, *what, **rank)
        assert [(end.value, end.error) for end in ended] == [("finished", "")] * size, ended

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in read_json_lines(self.folder.events) if line["event"] == name]


class Runs:
    """Makes runs of an experiment, each in a folder of its own, and trains the undisturbed ones once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._undisturbed: dict[str, Run] = {}
        self._made = 0

    def run(self, experiment: Experiment, **rank: Any) -> Run:
        """A new run."""
        self._made += 1
        return Run(create_run(experiment, self._folder / f"runs_{self._made}"), Rank(**rank))

    def undisturbed(self, experiment: Experiment) -> Run:
        """The same experiment in one process to which nothing happens."""
        key = repr(experiment)
        if key not in self._undisturbed:
            run = self._undisturbed[key] = self.run(experiment)
            run.finish(1)
        return self._undisturbed[key]


def assert_as_if_nothing_had_happened(run: Run, undisturbed: Run) -> None:
    """The last and the best checkpoint, metrics, scores and predictions are the same to the byte."""
    assert_equal_runs(run.folder, undisturbed.folder)
    assert _best(run) == _best(undisturbed), "the best checkpoints differ"


def _best(run: Run) -> tuple[str, list[tuple[str, int]]]:
    best = run.folder.best.resolve()
    files = [file for file in sorted(best.iterdir()) if file.name != "MANIFEST.json"]
    return best.name, [(file.name, hash(file.read_bytes())) for file in files]


def samples_by_epoch(journals: Sequence[Path], steps_per_epoch: int) -> list[list[int]]:
    """The samples of each epoch, sorted; a step that was repeated counts as its last time did.

    Also checks that a repeated micro-batch reads the same samples.
    """
    steps: dict[tuple[int, int], list[int]] = {}
    for journal in journals:
        for line in read_json_lines(journal):
            place = (line["step"], line["number"])
            assert steps.get(place, line["samples"]) == line["samples"], place
            steps[place] = line["samples"]
    epochs: dict[int, list[int]] = {}
    for (step, _), samples in steps.items():
        epochs.setdefault(step // steps_per_epoch, []).extend(samples)
    return [sorted(epochs[epoch]) for epoch in sorted(epochs)]
