"""The worker: one process of a run. `run` wires everything together; `main` is for torchrun.

torchrun --nproc-per-node 2 -m toolkit.worker configs/quickstart.yaml key=value …
"""

from __future__ import annotations

import argparse
import faulthandler
import logging
import math
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from toolkit import finish
from toolkit.apart import check_same_data, shares_folder
from toolkit.attempts.ledger import Attempt
from toolkit.attempts.recovery import check_progress, settle
from toolkit.beginning import begin_with
from toolkit.calendar import Calendar
from toolkit.checkpoint.store import Checkpoints, Identity
from toolkit.config import identity, load, load_resolved
from toolkit.config.schema import Experiment
from toolkit.control import control_shape
from toolkit.create import create_run, experiment_dir
from toolkit.data.batches import epoch_steps
from toolkit.display import Display, choose_display
from toolkit.distributed import Group, join
from toolkit.errors import RunBusy, StkError, UserError
from toolkit.events import note_event
from toolkit.failure.classes import OUT_OF_MEMORY
from toolkit.failure.fence import alone, is_fenced
from toolkit.failure.quarantine import Quarantine
from toolkit.failure.records import describe, record_failure
from toolkit.failure.watchdog import Pulse, Watchdog, period_s
from toolkit.faults import Faults
from toolkit.loop import train
from toolkit.notices.notify import notify
from toolkit.optim import build_optimizer
from toolkit.parallel import check_parallel, spread
from toolkit.receipts import Receipts
from toolkit.recorder import Recorder
from toolkit.reduction import ExactReduction, FastReduction, Reduction, is_power_of_two
from toolkit.rng import seed_everything
from toolkit.rundir import RunDir
from toolkit.scene import describe_gpu, memory_advice, scene
from toolkit.state import Progress, TrainState
from toolkit.stop import Stop, StopFlag, stop_with_parent
from toolkit.tasks.base import Task, task_class
from toolkit.training import Outcome, Training
from toolkit.usage.sampling import UsageSampler
from toolkit.world import NONCE_VARIABLE, World

#: Exit status of a worker that saved and left before the end (sysexits' EX_TEMPFAIL).
EXIT_YIELDED = 75

#: Seconds in which a rank that has failed leaves, whatever its libraries do.
_LEAVE_WITHIN_S = 25.0
#: Seconds that drawing the report may take.
_REPORT_S = 600.0

log = logging.getLogger("toolkit")


def run(run: RunDir, world: World, stop: Stop) -> Outcome:
    """Train a run as one of its ranks, from its latest good checkpoint. Collective.

    Returns FINISHED at once where the run has finished before. Raises StkError, or whatever the
    task raised; failure.json has been written then.
    """
    if run.result.exists():
        return Outcome.FINISHED
    worker = _Worker(run, world)
    with _log_to(run, world):
        try:
            outcome = worker.work(stop)
        finally:
            worker.close()
        if outcome is Outcome.FINISHED and world.is_main:
            notify(run, "end")
        return outcome


class _Worker:
    """The stages of one attempt."""

    def __init__(self, run: RunDir, world: World) -> None:
        self._run = run
        self._world = world
        self._experiment = load_resolved(run.config)
        self._training: Training | None = None
        self._attempt: Attempt | None = None
        self._stage = "start"
        self._is_loaded = False
        self._device: torch.device | None = None
        self._gpu: dict[str, Any] = {}
        self._failure: BaseException | None = None
        self._doom = threading.Timer(_LEAVE_WITHIN_S, os._exit, (StkError.exit_code,))
        self._doom.daemon = True
        self._display: Display = choose_display(world.is_main, is_log=True)

    def close(self) -> None:
        """End what must not outlive the attempt."""
        self._doom.cancel()
        self._display.stop()

    @property
    def _phase(self) -> str:
        return self._training.phase if self._training else self._stage

    @property
    def _step(self) -> int:
        return self._training.state.progress.step if self._training else 0

    def _pulse(self) -> Pulse:
        """What this rank is doing, for its watchdog."""
        training, train = self._training, self._experiment.train
        found = scene(training, None, self._gpu)
        if training is None or not self._is_loaded:
            # Preparing data or reading a checkpoint may take as long as it takes.
            return Pulse(phase=self._phase, step=self._step, scene=found)
        # Before torch gives up waiting for the others, which it does without naming anybody.
        limit_s = min(train.hang_timeout_s, 0.75 * train.collective_timeout_s)
        if training.phase == "save":
            limit_s = max(limit_s, 10 * training.checkpoints.seconds)
        elif training.phase == "report":
            limit_s = max(limit_s, _REPORT_S)
        return Pulse(
            phase=training.phase, step=self._step, beats=training.beats, limit_s=limit_s, scene=found
        )

    def work(self, stop: Stop) -> Outcome:
        """Go through all stages; what fails is written down before the other ranks can notice."""
        hang_timeout_s = self._experiment.train.hang_timeout_s
        patience_s = max(3 * period_s(hang_timeout_s), min(60.0, hang_timeout_s))
        with self._explained(), alone(self._run, self._world, patience_s):
            _check_size(self._world, self._experiment)
            set_arithmetic(self._experiment)
            self._attempt = self._begin()
            self._stage = "rendezvous"
            with (
                join(self._run, self._world, self._experiment.train) as group,
                self._explained(),
                Watchdog(self._run, self._world, hang_timeout_s, self._pulse),
                UsageSampler(self._run, self._world, str(group.device)),
            ):
                return self._work_joined(group, self._attempt, stop)

    def _begin(self) -> Attempt:
        """Settle how the start before this one ended, and open the line of this one."""
        if self._world.is_main:
            settle(self._run, self._world)
            check_progress(self._run)
        return Attempt(self._run, self._world)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Write down what fails in here. A start that must leave the folder to another one writes nothing."""
        try:
            yield
        except RunBusy:
            raise
        except BaseException as error:
            if error is not self._failure:
                self._failure = error
                self._explain(error)
            raise

    def _explain(self, error: BaseException) -> None:
        log.error("rank %d failed", self._world.rank, exc_info=error)
        batch = self._training.batch if self._training else None
        samples = [] if batch is None else batch.tolist()
        found = scene(self._training, self._device, self._gpu)
        if describe(error)[0] == OUT_OF_MEMORY:
            found["advice"] = memory_advice(found, self._experiment.train.accumulation)
        record_failure(self._run, self._world, self._phase, self._step, error, samples, found)
        if self._attempt is not None and not is_fenced(self._run, self._world.nonce):
            self._attempt.failed(self._step)
        # The others wait until this process has ended, and leaving a broken group can take for ever.
        self._doom.start()

    def _work_joined(self, group: Group, attempt: Attempt, stop: Stop) -> Outcome:
        # Asked now: a device that has failed says nothing.
        self._device, self._gpu = group.device, describe_gpu(group.device)
        attempt.joined(group)
        group = replace(group, shares_folder=shares_folder(self._run, group))
        self._stage = "data preparation"
        task = self._open_task(group)
        self._stage = "model"
        training = self._training = build_training(self._run, self._experiment, task, group, self._display)
        training.attempt = attempt
        with closing(training.reduction), closing(training.receipts), closing(training.checkpoints):
            outcome = self._train(training, attempt, stop)
        # Rank 0 is still writing when the others are done: a launcher that ends all ranks once
        # one has left must not find it at that.
        training.enter("communication")
        group.barrier()
        return outcome

    def _train(self, training: Training, attempt: Attempt, stop: Stop) -> Outcome:
        """Load, train, finish or yield, and write down how it ended."""
        training.phase = "load"
        resumed = training.checkpoints.load_latest(training.state)
        if not resumed:
            self._begin_with(training)
        attempt.started(self._step, resumed)
        training.recorder.start(self._step)
        training.receipts.start(self._step)
        training.quarantine = training.group.agree(
            Quarantine.of(self._run, self._experiment.train.quarantine)
        )
        training.faults = Faults.from_environment(
            self._world.rank,
            attempt.number,
            note=lambda event, **facts: note_event(self._run, event, rank=self._world.rank, **facts),
        )
        training.checkpoints.faults = training.faults
        training.checkpoints.beat = training.beat
        self._is_loaded = True
        outcome = train(training, stop)
        if outcome is Outcome.FINISHED:
            training.enter("evaluation")
            finish.finish(self._run, training, attempt.number, attempt.seconds())
        training.recorder.close(self._step)
        attempt.ended(
            self._step,
            _why(outcome, stop, training.group),
            step_s=round(training.step_s, 4),
            save_s=round(training.checkpoints.seconds, 4),
        )
        return outcome

    def _begin_with(self, training: Training) -> None:
        """Take over the weights of an earlier run. Collective."""
        file = begin_with(self._experiment, training.state.model, training.group)
        if file is not None:
            note_event(self._run, "weights_loaded", file=str(file))

    def _open_task(self, group: Group) -> Task:
        """Rank 0 prepares the data while the others wait; then each opens it."""
        kind = task_class(self._experiment)
        first = group.main_first if group.shares_folder else group.nodes_first
        first(lambda: kind.prepare(self._experiment, self._display.preparing))
        task = kind(self._experiment)
        check_same_data(task.fingerprint, group)
        return task


def _why(outcome: Outcome, stop: Stop, group: Group) -> str:
    """Why an attempt ended, in a word: that of the first rank that was asked to stop. Collective."""
    if outcome is Outcome.FINISHED:
        return "finished"
    return next((str(reason) for reason in group.gather(stop.reason(0.0)) if reason), "requested")


def _check_size(world: World, experiment: Experiment) -> None:
    logical_ranks = experiment.train.logical_ranks
    check_parallel(experiment.train.parallel, world.size)
    if world.size > logical_ranks:
        raise UserError(
            f"{world.size} processes were started, but train.logical_ranks is {logical_ranks}: "
            f"start at most {logical_ranks}, or set train.logical_ranks higher (that makes another run)"
        )


def set_arithmetic(experiment: Experiment) -> None:
    """Fix what arithmetic depends on besides the numbers: threads, and kernels on CUDA."""
    torch.set_num_threads(experiment.train.threads)
    if experiment.train.deterministic and torch.cuda.is_available():
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.benchmark = False


def build_training(
    run: RunDir, experiment: Experiment, task: Task, group: Group, display: Display
) -> Training:
    """Model, optimizer and everything around them, as at step 0. Collective."""
    seed_everything(experiment.seed)
    # What transformers loads would not train: without dropout up to the first evaluation of each start.
    model = task.model().to(group.device).train()
    state = TrainState(
        Progress(),
        model,
        build_optimizer(model, experiment.optimizer),
        torch.amp.GradScaler(group.device.type, enabled=experiment.train.precision == "fp16"),
    )
    calendar = Calendar.of(experiment, epoch_steps(experiment.train, task.splits["train"].lengths))
    recorder = Recorder(run, calendar, group.world.is_main, display)
    return Training(
        run=run,
        experiment=experiment,
        task=task,
        state=state,
        group=group,
        reduction=_reduction(model, group, experiment, task),
        checkpoints=Checkpoints(
            run,
            group,
            Identity(experiment=identity(experiment), data=task.fingerprint),
            experiment.checkpoint.keep,
            lambda event, **facts: note_event(run, event, **facts),
            experiment.checkpoint.every_minutes,
        ),
        recorder=recorder,
        calendar=calendar,
        receipts=Receipts(run, group.world.is_main),
    )


def _reduction(model: torch.nn.Module, group: Group, experiment: Experiment, task: Task) -> Reduction:
    wanted = experiment.train.reduction
    micro_batches = experiment.train.logical_ranks * experiment.train.accumulation
    if wanted == "auto":
        is_tree = is_power_of_two(micro_batches)
        wanted = "exact" if group.device.type == "cpu" and is_tree else "fast"
    # For dp there is one process, and what the reduction does with the model's gradients stays the same.
    module = spread(model, experiment.train, group)
    if wanted == "fast":
        return FastReduction(model, group, experiment.train.find_unused_parameters, module)
    if not is_power_of_two(group.world.size):
        log.warning(
            "%d processes are no power of two: the data are the same as on any other number, "
            "the weights are equal within rounding, not bit for bit",
            group.world.size,
        )
    return ExactReduction(
        model, group, module, riding=math.prod(control_shape(micro_batches, task.train_sums))
    )


@contextmanager
def _log_to(run: RunDir, world: World) -> Iterator[None]:
    """Send the log of this process to its file, stack traces of crashes included."""
    run.logs.mkdir(exist_ok=True)
    with open(run.log(world.nonce, world.rank), "a", encoding="utf-8") as stream:
        faulthandler.enable(stream)
        handler = logging.StreamHandler(stream)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.info("rank %d of %d on %s, process %d", world.rank, world.size, socket.gethostname(), os.getpid())
        try:
            yield
        finally:
            log.removeHandler(handler)
            faulthandler.disable()


def main(argv: Sequence[str] | None = None) -> int:
    """Run as one rank of torchrun, or alone; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m toolkit.worker", description=__doc__)
    parser.add_argument("config", help="experiment file, or a run's folder to go on with")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    parser.add_argument("--prepare", action="store_true", help="only build the prepared data")
    arguments = parser.parse_args(argv)
    work = _prepare if arguments.prepare else _main
    try:
        return work(Path(arguments.config), arguments.overrides)
    except StkError as error:
        # A launcher tells what stands in failure.json, of whichever rank.
        if NONCE_VARIABLE not in os.environ or not RunDir(Path(arguments.config)).failure.exists():
            print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        # Of a rank that only lost its peers the log is enough: the first failure is what matters.
        if describe(error)[0] == "peer_lost":
            print(f"error: rank {os.environ.get('RANK', 0)} lost its peers", file=sys.stderr)
        else:
            traceback.print_exc()
        return StkError.exit_code


def _prepare(path: Path, overrides: Sequence[str]) -> int:
    experiment = load_resolved(path / "config.yaml") if path.is_dir() else load(path, overrides)
    display = choose_display(is_main=True)
    try:
        display.message(task_class(experiment).prepare(experiment, display.preparing))
    finally:
        display.stop()
    return 0


def _main(path: Path, overrides: Sequence[str]) -> int:
    if NONCE_VARIABLE in os.environ:
        stop_with_parent()
    stop = StopFlag().install(signal.SIGTERM, signal.SIGINT)
    if (path / "config.yaml").is_file():
        target = RunDir(path.resolve())
    else:
        target = create_run(load(path, overrides), experiment_dir())
    outcome = run(target, World.from_environment(), stop)
    return 0 if outcome is Outcome.FINISHED else EXIT_YIELDED


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: a thread of torch's that asks for the GIL of an interpreter which is ending would
    # abort the process (Python before 3.14), after everything has been done and written.
    os._exit(code)
