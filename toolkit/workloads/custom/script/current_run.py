"""The run that a script is part of: its checkpoints, its metrics, and requests to leave."""

from __future__ import annotations

import atexit
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

from toolkit.checkpoint.paths import step_of_best, temporary_name
from toolkit.errors import UserError
from toolkit.exit_codes import ExitCode
from toolkit.files import create_once, fsync_path
from toolkit.run.events import note_event
from toolkit.run.fence import leave_if_fenced
from toolkit.workloads.custom.script import checkpoints
from toolkit.workloads.custom.script.alone import hold_stand_in, make_stand_in
from toolkit.workloads.custom.script.metrics import MetricsLog, checked, whole
from toolkit.workloads.custom.script.misuse import misuse, told_if_misused
from toolkit.workloads.custom.script.place import Place, find_place
from toolkit.workloads.custom.script.ranks import SharedError, group, largest, let_threads_drop_tensors
from toolkit.workloads.custom.script.resuming import Newest
from toolkit.workloads.custom.script.stopping import Agreement, Signals
from toolkit.workloads.custom.script.waiting import wait_for_ranks

#: The names of checkpoints have eight digits.
_MOST_STEPS = 99_999_999


class CurrentRun:
    """The run that this process is part of, as `stk.current_run()` gives it.

    For a script that was started without `stk`, the run is a stand-in: a folder below ./experiments/alone.
    All ranks must make collective calls, in the same order.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._signals = Signals()
        self._agreement = Agreement(self._signals, place.stop_file)
        self._log = MetricsLog(place)
        self._newest = Newest(place)
        self._resumed: int | None = None
        if place.is_in_run:
            # Now, to protect the processes that this one forks, such as the workers of a data loader.
            self.catch_signals()
            # The first of these, so that it is called after the others, and after those of the script.
            atexit.register(self._signals.ignore)
        atexit.register(let_threads_drop_tensors)
        # Also if the script fails: its last lines may be newer than progress.json.
        atexit.register(self._log.close)

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self._place.run.path

    @property
    def world_size(self) -> int:
        """Number of processes of the script."""
        return self._place.size

    def catch_signals(self) -> None:
        """Let signals make `should_stop` true instead of ending the script.

        `stk` does this at the start, and without `stk` the first `should_stop` does it.
        """
        self._signals.install(self._place)

    @told_if_misused
    def latest_checkpoint(self) -> Path | None:
        """Return the folder of the newest valid checkpoint, or None. Collective.

        All ranks get the answer of rank 0. Damaged newer checkpoints are set aside. Metrics that earlier
        attempts logged after its step are dropped.

        Raises stk.CheckpointError if all checkpoints are damaged, or if the disk fails; stk.UserError if
        another training without `stk` uses the folder. All ranks raise it.
        """
        if not self._place.is_in_run and hasattr(sys, "ps1"):
            # In a notebook, an interrupted cell is executed again.
            self._agreement.begin_again()
        step = self._newest.step()
        if step is None:
            self._resumed = -1
            return None
        self._resumed = step
        self._log.resumes()
        if self._place.is_main and not self._place.is_in_run:
            # No identity separates this script's trainings: this one may have other settings.
            sys.stderr.write(f"stk: continues from step {step} in {self.folder}; delete it to start anew\n")
        return self._place.run.checkpoint(step)

    @told_if_misused
    def log(
        self,
        *,
        step: int,
        total: int | None = None,
        split: str = "train",
        epoch: float | None = None,
        **metrics: Any,
    ) -> None:
        """Write metrics of a step, for `stk status`, `watch` and `report`. Not collective: rank 0 writes.

        Each call with metrics writes a line: if steps take milliseconds, log every ten or hundred steps.
        A second call for the same step and split adds metrics, and replaces those of the same name.

        step     number of steps done, from 1
        total    steps of the whole training, for the progress in `stk status`
        split    train, validation or test
        epoch    passes over the data so far, such as 1.5
        metrics  one number each, or a tensor of one element; samples_per_s and tokens_per_s are speeds.
                 A value that is not finite is stored as null

        Raises stk.UserError for a value that is not a number, or if a stand-in cannot be written. After
        `latest_checkpoint` also if another training without `stk` uses the folder.
        """
        if not self._place.is_main:
            return
        self._log.write(checked(step, total, split, epoch, metrics), self._resumed)

    @told_if_misused
    def should_stop(self, *, every: int | None = None) -> bool:
        """Return whether to save and leave, the same on all ranks. Collective: call it after each step.

        True once a signal or Slurm has asked any rank to leave. The ranks agree about once a second.
        Without torch.distributed each process decides alone.

        every   agree every this many calls instead
        """
        self.catch_signals()
        return self._agreement.should_stop(every)

    def _should_stop_evaluating(self) -> bool:
        """Return what `should_stop` returns. Collective: called after each batch of an evaluation."""
        self.catch_signals()
        return self._agreement.should_stop(None, evaluates=True)

    def _leave_if_asked(self) -> None:
        """End this process with status 75 if it is asked to leave, where there is nothing to save.

        Not collective: the other ranks are asked as well, and leave at a batch of their own.
        """
        if self._agreement.is_asked():
            self.leave()

    @contextmanager
    @told_if_misused
    def checkpoint(self, step: int, *, best: bool = False, keep: int = 2) -> Iterator[Path]:
        """Give an empty folder that becomes the checkpoint of the step. Collective.

            with run.checkpoint(step) as folder:
                torch.save(state, folder / "state.pt")

        Each rank may write its own files and folders. When all ranks have left the block, rank 0
        completes the checkpoint, with checksums and the links `last` and `best`. An error in the block
        leaves no checkpoint. The other ranks then wait, so let the error end the script.

        step   number of steps done, at most 99,999,999; replaces a checkpoint of the same step
        best   whether this is the best checkpoint so far; the best one is kept
        keep   how many of the newest are kept

        Raises stk.CheckpointError on all ranks if a disk fails, and stk.UserError if nothing was
        written, if another training without `stk` uses the folder, or on a rank other than 0 without
        torch.distributed.
        """
        step, keep = self._checked_step(step), whole(f"run.checkpoint(keep={keep!r})", keep, least=1)
        begun = time.time()
        folder = self._begin(step)
        try:
            yield folder
        except BaseException:
            # Another rank may still be writing into it: the next save deletes it, or the next attempt.
            if self._place.size == 1 or group() is None:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        self._finish(folder, step, begun, best=best, keep=keep)

    @told_if_misused
    def leave(self) -> NoReturn:
        """End this process with status 75: it has saved, and continues in its next attempt.

        All ranks call it. The run goes back into the queue, unless a person has stopped it. Raises
        SystemExit, so `finally` and `with` work.
        """
        if self._place.is_main:
            self._log.progress()
        if (stop_file := self._place.stop_file) is not None:
            with suppress(OSError):
                why = "requested" if self._agreement.is_asked() else "saved"
                create_once(stop_file, f'{{"why": "{why}", "rank": {self._place.rank}}}\n')
        sys.exit(ExitCode.YIELDED)

    # -- saving

    def _checked_step(self, given: Any) -> int:
        """Return the step as an integer. Raises UserError if this rank cannot save."""
        step = whole(f"run.checkpoint({given!r})", given)
        if step > _MOST_STEPS:
            raise misuse(f"run.checkpoint({step})", f"expected a step of at most {_MOST_STEPS:,}")
        if (found := group()) is not None and found.get_world_size() > self._place.size:
            raise UserError(
                f"the process group has {found.get_world_size()} processes, but WORLD_SIZE is "
                f"{self._place.size}: let `stk run --procs N` or torchrun start the processes, or set RANK "
                "and WORLD_SIZE in each process before stk.current_run()"
            )
        if self._place.rank > 0 and group() is None:
            raise UserError(
                f"rank {self._place.rank} of {self._place.size} calls run.checkpoint without a process "
                "group: call torch.distributed.init_process_group() first, or save on rank 0 only"
            )
        return step

    def _begin(self, step: int) -> Path:
        """Make the temporary folder. Collective."""
        run, error = self._place.run, SharedError(f"run.checkpoint({step}) cannot begin")
        folder = temporary_name(run.checkpoint(step), f"start_{self._place.attempt}", "tmp")
        wait_for_ranks(f"run.checkpoint({step})", "`if rank == 0:` belongs inside the block, not around it.")
        may_tidy = self._place.take_checkpoints() and self._place.size > 1
        lowest, highest = largest(-step, step)
        with error:
            if -lowest != highest:
                raise UserError(
                    f"the ranks save different steps, {-lowest:.0f} to {highest:.0f}: all must save the same"
                )
            if self._place.is_main:
                hold_stand_in(self._place)
                failed = run.checkpoints.glob(".step_*.start_*.tmp") if may_tidy else ()
                for left in (folder, *failed):
                    shutil.rmtree(left, ignore_errors=True)
                if not self._place.is_in_run:
                    # A run that was moved is not made again.
                    make_stand_in(run)
                run.checkpoints.mkdir(exist_ok=True)
                folder.mkdir()
        error.raise_together()
        # On a network file system, this host may not see the folder yet.
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _finish(self, folder: Path, step: int, begun: float, *, best: bool, keep: int) -> None:
        """Make the folder a checkpoint. Collective."""
        error = SharedError(f"run.checkpoint({step}) failed")
        with error:
            checkpoints.flush(folder)
        error.raise_together()
        commit = partial(self._commit, folder, step, begun, best=best, keep=keep)
        error.work_on_rank_0(commit if self._place.is_main else None)
        error.raise_together()

    def _commit(self, folder: Path, step: int, begun: float, *, best: bool, keep: int) -> None:
        run, nonce = self._place.run, self._place.nonce
        try:
            facts = {
                "world_size": self._place.size,
                "save_seconds": round(time.time() - begun, 4),
                "best": best or step_of_best(run) == step,
            }
            # It may drop lines, which are those of the new attempt if another one has taken over.
            leave_if_fenced(run, nonce)
            # An attempt that continues from here does not log them again.
            self._log.flush()
            with suppress(OSError):
                # A lost host must not leave a checkpoint without the lines of the steps before it.
                fsync_path(run.metrics)
            size = checkpoints.commit(run, folder, step, facts, nonce)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        seconds = round(time.time() - begun, 4)
        note_event(run, "save", step=step, seconds=seconds, stall_s=seconds, bytes=size)
        self._log.progress()
        self._log.warn_if_early(step)
        checkpoints.tidy(run, step, best=best, keep=keep, nonce=nonce)


@cache
def current_run() -> CurrentRun:
    """Return the run of this script; the same object at each call. Not collective.

    Call it early: afterwards signals make `should_stop` true instead of ending a script that `stk` has
    started. Without `stk` the run is a stand-in in ./experiments/alone, named after the script.

    Raises stk.UserError if RANK or WORLD_SIZE is not a number.
    """
    return CurrentRun(find_place())
