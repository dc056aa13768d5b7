"""The worker: one process of a run. `run` wires everything together; `main` is for torchrun.

torchrun --nproc-per-node 2 -m toolkit.worker configs/quickstart.yaml key=value …
"""

from __future__ import annotations

import argparse
import faulthandler
import logging
import os
import signal
import socket
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import torch
from filelock import FileLock, Timeout

from toolkit import finish
from toolkit.calendar import Calendar
from toolkit.checkpoint import Checkpoints, Identity
from toolkit.config import identity, load, load_resolved
from toolkit.config.schema import Experiment
from toolkit.create import create_run, experiment_dir
from toolkit.display import Display, choose_display
from toolkit.distributed import Group, join
from toolkit.errors import RunBusy, StkError, UserError
from toolkit.events import note_event
from toolkit.failure import describe, record_failure
from toolkit.faults import Faults
from toolkit.ledger import Attempt
from toolkit.loop import Outcome, Stop, Training, train
from toolkit.optim import build_optimizer
from toolkit.receipts import Receipts
from toolkit.recorder import Recorder
from toolkit.reduction import ExactReduction, FastReduction, Reduction, is_power_of_two
from toolkit.rng import seed_everything
from toolkit.rundir import RunDir
from toolkit.state import Progress, TrainState
from toolkit.stop import StopFlag, stop_with_parent
from toolkit.tasks.base import Task, task_class
from toolkit.world import NONCE_VARIABLE, World

#: Exit status of a worker that saved and left before the end (sysexits' EX_TEMPFAIL).
EXIT_YIELDED = 75

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
            return worker.work(stop)
        except RunBusy:
            # The folder belongs to another start, which has not failed.
            raise
        except BaseException as error:
            log.exception("rank %d failed", world.rank)
            record_failure(run, world, worker.phase, worker.step, error)
            raise
        finally:
            worker.display.stop()


class _Worker:
    """The stages of one attempt."""

    def __init__(self, run: RunDir, world: World) -> None:
        self._run = run
        self._world = world
        self._experiment = load_resolved(run.config)
        self._training: Training | None = None
        self._stage = "start"
        self.display: Display = choose_display(world.is_main)

    @property
    def phase(self) -> str:
        return self._training.phase if self._training else self._stage

    @property
    def step(self) -> int:
        return self._training.state.progress.step if self._training else 0

    def work(self, stop: Stop) -> Outcome:
        _check_size(self._world, self._experiment)
        set_arithmetic(self._experiment)
        self._stage = "rendezvous"
        with _alive(self._run, self._world), join(self._run, self._world, self._experiment.train) as group:
            attempt = Attempt(self._run, group)
            self._stage = "data preparation"
            task = self._open_task(group)
            self._stage = "model"
            training = self._training = build_training(self._run, self._experiment, task, group, self.display)
            with closing(training.reduction):
                outcome = self._train(training, attempt, stop)
            # Rank 0 is still writing when the others are done: a launcher that ends all ranks once
            # one has left must not find it at that.
            group.barrier()
            return outcome

    def _train(self, training: Training, attempt: Attempt, stop: Stop) -> Outcome:
        """Load, train, finish or yield, and write down how it ended."""
        resumed = training.checkpoints.load_latest(training.state)
        attempt.started(self.step, resumed)
        training.recorder.start(self.step)
        training.receipts.start(self.step)
        training.faults = Faults.from_environment(self._world.rank, attempt.number)
        outcome = train(training, stop)
        if outcome is Outcome.FINISHED:
            training.enter("evaluation")
            finish.finish(self._run, training, attempt.number, attempt.seconds())
        training.recorder.close(self.step)
        attempt.ended(self.step, _why(outcome, stop))
        return outcome

    def _open_task(self, group: Group) -> Task:
        """Rank 0 prepares the data while the others wait; then each opens it."""
        kind = task_class(self._experiment)
        if group.world.is_main:
            kind.prepare(self._experiment, self.display.preparing)
        group.barrier()
        return kind(self._experiment)


def _why(outcome: Outcome, stop: Stop) -> str:
    """Why an attempt ended, in a word."""
    if outcome is Outcome.FINISHED:
        return "finished"
    return stop.reason(0.0) or "stop on another rank"


def _check_size(world: World, experiment: Experiment) -> None:
    logical_ranks = experiment.train.logical_ranks
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
    model = task.model().to(group.device)
    state = TrainState(
        Progress(),
        model,
        build_optimizer(model, experiment.optimizer),
        torch.amp.GradScaler(group.device.type, enabled=experiment.train.precision == "fp16"),
    )
    calendar = Calendar.of(experiment, len(task.splits["train"]))
    recorder = Recorder(run, calendar, group.world.is_main, display)
    return Training(
        experiment=experiment,
        task=task,
        state=state,
        group=group,
        reduction=_reduction(model, group, experiment),
        checkpoints=Checkpoints(
            run,
            group,
            Identity(experiment=identity(experiment), data=task.fingerprint),
            experiment.checkpoint.keep,
            lambda event, **facts: note_event(run, event, **facts),
        ),
        recorder=recorder,
        calendar=calendar,
        receipts=Receipts(run, group.world.is_main),
    )


def _reduction(model: torch.nn.Module, group: Group, experiment: Experiment) -> Reduction:
    wanted = experiment.train.reduction
    if wanted == "auto":
        is_tree = is_power_of_two(experiment.train.logical_ranks * experiment.train.accumulation)
        wanted = "exact" if group.device.type == "cpu" and is_tree else "fast"
    if wanted == "fast":
        return FastReduction(model, group, experiment.train.find_unused_parameters)
    if not is_power_of_two(group.world.size):
        log.warning(
            "%d processes are no power of two: the data are the same as on any other number, "
            "the weights are equal within rounding, not bit for bit",
            group.world.size,
        )
    return ExactReduction(model, group)


@contextmanager
def _alive(run: RunDir, world: World) -> Iterator[None]:
    """Hold the run's lock on rank 0, so that no second start of it can write beside this one."""
    if not world.is_main:
        yield
        return
    lock = FileLock(run.alive)
    try:
        # A moment's patience: `stk status` takes the lock for an instant to see whether it is held.
        lock.acquire(timeout=2)
    except Timeout:
        raise RunBusy(
            f"{run.run_id} is being trained by another process right now: stk status shows it"
        ) from None
    try:
        yield
    finally:
        lock.release()


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
    experiment = load(path, overrides)
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
