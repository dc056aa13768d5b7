"""The stages of an attempt on one rank: lock the run, join the group, build, load, train, finish or yield.

Records, and their writers:

    attempts.jsonl   rank 0, through Attempt: how this attempt began and ended. At its start it also explains
                     the end of the previous attempt, if that one could not record it itself
    failure.json     the rank that fails, in `RankAttempt.run`, which handles all errors
    result.json      rank 0, last, in toolkit.training.attempt.finalize

If a rank was killed, the process that started it records that.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from toolkit.config import load_to_run
from toolkit.distributed.process_group import Group, join
from toolkit.distributed.replica_check import shares_folder
from toolkit.errors import RunBusy, RunFailed, StkError
from toolkit.monitoring.usage.sampling import UsageSampler
from toolkit.reliability.fault_injection import Faults
from toolkit.reliability.quarantine import Quarantine
from toolkit.reliability.restart_policy import check_progress
from toolkit.reliability.stop import Stop, StoppedEarly
from toolkit.reliability.watchdog import Pulse, Watchdog
from toolkit.run.attempts.attempt import Attempt
from toolkit.run.attempts.crash_record import close_open_attempt
from toolkit.run.attempts.outcome import Outcome
from toolkit.run.events import note_event
from toolkit.run.failure.classes import OUT_OF_MEMORY, class_of
from toolkit.run.failure.records import record_failure
from toolkit.run.fence import hold_run, leave_if_fenced
from toolkit.run.phases import Phase
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.task import Task
from toolkit.training.assembly.build_training import build_training
from toolkit.training.assembly.data_parallel import check_parallel, visible_devices
from toolkit.training.assembly.open_task import open_task
from toolkit.training.attempt import finalize
from toolkit.training.attempt.failure_context import describe_gpu, failure_context, memory_advice
from toolkit.training.attempt.time_limits import LEAVE_WITHIN_S, hang_limit_s, lock_patience_s
from toolkit.training.context import Activity, TrainContext
from toolkit.training.loop import train
from toolkit.training.numerics.arithmetic import set_arithmetic
from toolkit.training.output.progress_display import Display, choose_display
from toolkit.training.warm_start.find import check_meaning
from toolkit.training.warm_start.load import load_initial_weights

log = logging.getLogger("toolkit")


class RankAttempt:
    """One attempt of a run on one rank. Raises UserError if the run's experiment cannot be read."""

    def __init__(self, run: RunDir, world: World) -> None:
        self._run = run
        self._world = world
        self._experiment = load_to_run(run.config)
        self._activity = Activity()
        self._display: Display = choose_display(world.is_main, is_logged=True)
        self._exit_timer = threading.Timer(LEAVE_WITHIN_S, os._exit, (StkError.exit_code,))
        self._exit_timer.daemon = True
        # Set by the stages. A failure record and the watchdog use those that are set so far.
        self._attempt: Attempt | None = None
        self._device: torch.device | None = None
        self._gpu: dict[str, Any] = {}
        self._context: TrainContext | None = None
        self._is_loaded = False

    def run(self, stop: Stop) -> Outcome:
        """Run all stages; call this once. Collective.

        Raises StkError, or any error of the task, after it has been recorded.
        """
        try:
            with ExitStack() as stack:
                return self._run_recorded(stop, stack)
        finally:
            self._exit_timer.cancel()
            self._display.stop()

    def _run_recorded(self, stop: Stop, stack: ExitStack) -> Outcome:
        """Run all stages. Only this records a failure, before other ranks notice it.

        An attempt records nothing if another one holds the run or has replaced this one.
        """
        try:
            outcome = self._run_stages(stop, stack)
            # Closed here, so that a failure to leave the group is recorded as well.
            stack.close()
            return outcome
        except RunBusy:
            raise
        except BaseException as error:
            # An attempt that was replaced while frozen may lose its peers before its watchdog notices.
            leave_if_fenced(self._run, self._world.nonce)
            self._record_failure(error)
            if isinstance(error, SystemExit):
                # Its status may be 0, and only a run with a result has finished.
                raise RunFailed(f"your code ended the process: sys.exit({error.code!r})") from error
            raise

    def _run_stages(self, stop: Stop, stack: ExitStack) -> Outcome:
        """Lock the run, join the group, build and train; the stack undoes all of it."""
        stack.enter_context(hold_run(self._run, self._world, lock_patience_s(self._experiment.train)))
        check_parallel(self._experiment.train.parallel, self._world.size)
        set_arithmetic(self._experiment)
        if self._world.is_main:
            # The previous attempt may not have recorded its end.
            close_open_attempt(self._run, self._world)
            check_progress(self._run)
        self._attempt = attempt = Attempt(self._run, self._world)
        group = self._join(attempt, stack)
        try:
            self._activity.phase = Phase.DATA_PREPARATION
            task = open_task(self._experiment, group, self._display.preparing, stop)
        except StoppedEarly:
            return self._leave_unprepared(group, attempt, stop)
        for problem in getattr(task, "warnings", ()) if self._world.is_main else ():
            log.warning("%s", problem)
            note_event(self._run, "data_warning", why=problem)
        self._context = context = self._build(task, group, attempt)
        with closing(context.reduction), closing(context.step_records), closing(context.checkpoints):
            self._load(context, attempt)
            outcome = self._train(context, attempt, stop)
        # Rank 0 still writes when the others are done: a launcher that ends all ranks once one has left
        # must not interrupt that.
        context.enter(Phase.COMMUNICATION)
        # Rank 0's report may take longer than the timeout of a collective.
        group.main_first(lambda: None)
        return outcome

    def _join(self, attempt: Attempt, stack: ExitStack) -> Group:
        """Join the other ranks, and start the watchdog of this one. Collective."""
        self._activity.phase = Phase.RENDEZVOUS
        train = self._experiment.train
        group = stack.enter_context(join(self._run, self._world, train))
        stack.enter_context(Watchdog(self._run, self._world, train.hang_timeout_s, self._pulse))
        stack.enter_context(UsageSampler(self._run, self._world, str(group.device)))
        # Queried now: a device that has failed does not answer.
        self._device, self._gpu = group.device, describe_gpu(group.device)
        attempt.joined(group, visible_devices(group))
        return replace(group, shares_folder=shares_folder(self._run, group))

    def _leave_unprepared(self, group: Group, attempt: Attempt, stop: Stop) -> Outcome:
        """Record that the attempt was stopped before its data were prepared. Collective."""
        step = max(self._run.checkpoint_steps(), default=0)
        attempt.ended(step, _end_reason(Outcome.YIELDED, stop, group), first_step=step)
        group.barrier()
        return Outcome.YIELDED

    def _build(self, task: Task, group: Group, attempt: Attempt) -> TrainContext:
        """Build the model and everything around it, as at step 0. Collective."""
        self._activity.phase = Phase.MODEL
        own = Quarantine.of(self._run, self._experiment.train.quarantine)
        rank = self._world.rank
        note = partial(note_event, self._run, rank=rank)
        return build_training(
            self._run,
            self._experiment,
            task,
            group,
            self._display,
            attempt=attempt,
            faults=Faults.from_environment(rank, attempt.number, note=note),
            quarantine=own.shared(group),
            activity=self._activity,
        )

    def _load(self, context: TrainContext, attempt: Attempt) -> None:
        """Restore the newest checkpoint, or load the weights that the experiment names. Collective."""
        self._activity.phase = Phase.LOAD
        resumed = context.checkpoints.load_latest(context.state)
        if not resumed:
            # The data may not have been prepared when this was checked before.
            check_meaning(self._experiment, context.task.prepared)
            file = load_initial_weights(self._experiment, context.state.model, context.group)
            if file is not None:
                note_event(self._run, "weights_loaded", file=str(file))
        attempt.started(self._step, resumed)
        context.metrics_writer.start(self._step, is_evaluated=not context.state.progress.awaits_evaluation)
        context.step_records.start(self._step)
        self._is_loaded = True

    def _train(self, context: TrainContext, attempt: Attempt, stop: Stop) -> Outcome:
        """Train, finish or yield, and record how it ended. Collective."""
        began, ready = self._step, time.time()
        outcome = train(context, stop)
        if outcome is Outcome.FINISHED:
            # Without a step left, training was at most a repeated evaluation.
            attempt.trained_at(time.time() if self._step > began else ready)
            try:
                finalize.finish(self._run, context, stop, attempt.number, attempt.seconds())
            except StoppedEarly:
                outcome = Outcome.YIELDED
        attempt.leave_if_replaced()
        context.metrics_writer.close(self._step)
        save_s = context.checkpoints.seconds if context.checkpoints.is_measured else 0.0
        attempt.ended(
            self._step,
            _end_reason(outcome, stop, context.group),
            step_s=round(self._activity.step_s, 4),
            save_s=round(save_s, 4),
        )
        return outcome

    @property
    def _step(self) -> int:
        return self._context.state.progress.step if self._context else 0

    def _pulse(self) -> Pulse:
        """Return the activity of this rank, for its watchdog."""
        phase = self._activity.phase
        # Before the beats: what shortens the limit comes after a beat.
        limit_s = self._limit_s(phase)
        return Pulse(
            phase=phase,
            step=self._step,
            beats=self._activity.beats,
            limit_s=limit_s,
            failure_context=failure_context(self._context, None, self._gpu),
        )

    def _limit_s(self, phase: Phase) -> float | None:
        """Seconds without a heartbeat after which this rank counts as hanging; None for no limit."""
        if self._context is None or not self._is_loaded:
            # Preparing data and reading a checkpoint have no known duration.
            return None
        save_s, compiles = self._context.checkpoints.seconds, self._activity.may_compile
        return hang_limit_s(self._experiment.train, phase, save_s, compiles=compiles)

    def _record_failure(self, error: BaseException) -> None:
        log.error("rank %d failed", self._world.rank, exc_info=error)
        activity = self._activity
        samples = [] if activity.batch is None else activity.batch.tolist()
        found = failure_context(self._context, self._device, self._gpu)
        if class_of(error) == OUT_OF_MEMORY:
            evaluation = self._experiment.evaluation if activity.phase is Phase.EVALUATION else None
            halved = self._context is not None and self._context.precision is not None
            accumulation = self._experiment.train.accumulation
            found["advice"] = memory_advice(found, accumulation, evaluation, halved=halved)
        record_failure(self._run, self._world, activity.phase, self._step, error, samples, found)
        if self._attempt is not None:
            self._attempt.failed(self._step)
        # The other ranks wait for this process to end, and leaving a broken group may never return.
        self._exit_timer.start()
        if self._context is not None:
            # Last, because a disk that has failed may not answer; a full one has a little room by now.
            self._context.metrics_writer.failed(self._step)


def _end_reason(outcome: Outcome, stop: Stop, group: Group) -> str:
    """The reason why an attempt ended; after a stop, that of the first rank with one. Collective."""
    if outcome is Outcome.FINISHED:
        return "finished"
    return next((str(reason) for reason in group.gather(stop.reason_to_stop(0.0)) if reason), "requested")
