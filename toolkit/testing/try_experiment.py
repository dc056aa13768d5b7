"""Try an experiment before its job waits in a queue, for `stk check`.

    python -P -m toolkit.testing.try_experiment RUN_DIR

writes a line of JSON to standard output for each check when it is done. RUN_DIR is a new run of the
experiment; the trial runs are beside it. Nothing else is written, but data are prepared as
training does.
"""

from __future__ import annotations

import json
import resource
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

from toolkit.config import load_to_run
from toolkit.config.schema import Experiment
from toolkit.distributed.devices import choose_device
from toolkit.distributed.process_group import Group
from toolkit.distributed.step_sync import StepSync
from toolkit.errors import StkError
from toolkit.reliability.stop import NeverStop
from toolkit.run.run_dir import RunDir
from toolkit.system.output.amounts import size, size_mb
from toolkit.system.output.few import few
from toolkit.system.process_main import exit_status, process_main, take_stdout
from toolkit.system.world import World
from toolkit.task import Task
from toolkit.testing import contract
from toolkit.testing.trial_runs import STEPS, Trial, train_until
from toolkit.training.assembly.build_training import build_training
from toolkit.training.loop import plan_of
from toolkit.training.numerics.arithmetic import set_arithmetic
from toolkit.training.output.progress_display import Display
from toolkit.training.step.take_step import take_step

#: Seconds after which training on a few samples ends, for each learning rate.
_LEARNING_S = 20.0
#: Number of steps that are timed after a first one, and seconds after which timing ends.
_TIMED_STEPS, _TIMED_S = 4, 15.0
#: Maximum number of parameters without a gradient that are named.
_NAMED = 3
#: This package, and where libraries are.
_OURS, _LIBRARIES = Path(__file__).parents[1], "site-packages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check; is_good is None if it could not be made."""

    check: str
    is_good: bool | None
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a step on this machine with one process.

    device       cpu or cuda
    step_s       seconds of a step
    steps        of the whole training
    memory_mb    the most that the process has held
    gpu_mb       the most that tensors took on the GPU; 0 without one
    """

    device: str
    step_s: float
    steps: int
    memory_mb: int
    gpu_mb: int


def findings(run: RunDir) -> Iterator[Finding | Cost]:
    """Try the experiment of a run. Without data, a model and a loss there is nothing more to check."""
    experiment = load_to_run(run.config)
    set_arithmetic(experiment)
    task: Task | None = None
    model: nn.Module | None = None

    def open_data() -> str:
        nonlocal task
        task = contract.open_task(experiment)
        return task.summary

    def build() -> str:
        nonlocal model
        assert task is not None
        model = contract.new_model(task)
        count = sum(each.numel() for each in model.parameters())
        return f"{count:,} parameters"

    def compute_loss() -> str:
        assert task is not None
        assert model is not None
        contract.loss_is_a_finite_sum(experiment, task, model)
        loss = contract.mean_of(task.loss(model, contract.batch_of(task, contract.few(task))))
        return f"{loss:.4g}{_unused(model)}"

    for name, check in (("data", open_data), ("model", build), ("loss is finite", compute_loss)):
        yield (finding := _made(name, check))
        if not finding.is_good:
            return
    assert task is not None
    assert model is not None
    yield from _of_steps(experiment, task, model)
    yield from _of_runs(experiment, run.path.parent)
    yield from _cost(run, experiment, task)


def _unused(model: nn.Module) -> str:
    """Name the parameters without a gradient, which may be a mistake; empty without any."""
    names = [name for name, each in model.named_parameters() if each.requires_grad and each.grad is None]
    return f"; no gradient for {few(names, _NAMED)}" if names else ""


def _of_steps(experiment: Experiment, task: Task, model: nn.Module) -> Iterator[Finding]:
    """Checks of single steps, on the CPU."""
    is_random = contract.is_random(task, model)
    for name, check in _CHECKS.items():
        if is_random and name in _SUMS:
            found = "the loss of the same samples varies, as with augmentation"
            yield Finding(check=name, is_good=None, found=found)
        else:
            yield _made(name, partial(check, experiment, task, model))
    yield _made("overfits a batch", lambda: contract.learnt_by_heart(experiment, task, seconds=_LEARNING_S))


#: Checks of every task that need only a few samples.
_CHECKS: Mapping[str, contract.Check] = {
    "loss adds up": contract.loss_adds_up_over_samples,
    "scores add up": contract.scores_add_up_over_batches,
    "same seed, same model": contract.same_seed_makes_the_same_model,
}
#: Those that compare sums.
_SUMS = ("loss adds up", "scores add up")


def _of_runs(experiment: Experiment, folder: Path) -> Iterator[Finding]:
    """Check that processes and a stop do not change the weights after a few steps, on the CPU."""
    whole: list[Trial] = []

    def alone() -> str:
        whole.append(train_until(experiment, folder / "one", 1, STEPS))
        return f"{whole[0].step} steps, then a checkpoint with {size(len(whole[0].weights))} of weights"

    def compared(processes: int, *stops: int) -> Callable[[], str]:
        def trained() -> str:
            other = train_until(experiment, folder / f"{processes}_{len(stops)}", processes, *stops)
            assert other.weights == whole[0].weights, (
                f"the weights after {other.step} steps differ: the task depends on something other "
                "than the samples, the seed and the step, such as a random number that is not torch's, the "
                "time, or the state of an earlier sample"
            )
            return f"the same weights after {other.step} steps"

        return trained

    yield (first := _made("training", alone))
    if not first.is_good:
        return
    if experiment.train.batch_size == 1:
        yield Finding(check="1 process = 2", is_good=None, found="a step of one sample has no second process")
    else:
        yield _made("1 process = 2", compared(2, STEPS))
    yield _made("stopped = not stopped", compared(1, STEPS - 1, STEPS))


def _cost(run: RunDir, experiment: Experiment, task: Task) -> Iterator[Finding | Cost]:
    """Time and memory of whole steps on the device of the experiment, compiled if it compiles there."""
    measured: list[Cost] = []

    def measure() -> str:
        measured.append(measured_steps(run, experiment, task))
        cost = measured[0]
        size = experiment.train.batch_size
        of = f" of {size:,} samples" if size else ""
        gpu = f", {size_mb(cost.gpu_mb)} on the GPU" if cost.gpu_mb else ""
        where = {"cpu": f"a CPU, {experiment.train.threads} thread", "cuda": "a GPU"}[cost.device]
        return f"{cost.step_s:.3g} s for a step{of} on {where}; {size_mb(cost.memory_mb)} of memory{gpu}"

    train = experiment.train
    if train.compile == "on" and train.device != "cpu" and choose_device("auto").type == "cpu":
        found = "train.compile is on, and there is no GPU here: try it where the job will run"
        yield Finding(check="compiles", is_good=None, found=found)
        experiment = replace(experiment, train=replace(train, compile="off"))
    yield _made("time and memory", measure)
    yield from measured


def measured_steps(run: RunDir, experiment: Experiment, task: Task) -> Cost:
    """Take a few steps with this process alone and return their cost."""
    group = Group(World.single(), choose_device(experiment.train.device))
    context = build_training(run, experiment, task, group, Display())
    sync = StepSync(group.device, context.micro_batches, task.train_sums)
    plan, taken = plan_of(context, 0), []
    begin = time.monotonic()
    for position in range(min(1 + _TIMED_STEPS, context.schedule.steps_per_epoch)):
        before = time.monotonic()
        take_step(context, sync, plan, position, NeverStop())
        taken.append(time.monotonic() - before)
        if time.monotonic() - begin > _TIMED_S:
            break
    is_cuda = group.device.type == "cuda"
    return Cost(
        device=group.device.type,
        step_s=float(np.median(taken[1:] or taken)),
        steps=context.schedule.total_steps,
        # In KiB.
        memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**10,
        gpu_mb=torch.cuda.max_memory_allocated() // 2**20 if is_cuda else 0,
    )


def _made(name: str, check: Callable[[], str | None]) -> Finding:
    """Run a check; return its result, or the error that it raises, as a finding."""
    try:
        return Finding(check=name, is_good=True, found=check() or "")
    except contract.NotMade as reason:
        return Finding(check=name, is_good=None, found=str(reason))
    except (AssertionError, StkError) as error:
        return Finding(check=name, is_good=False, found=str(error).strip())
    except Exception as error:
        return Finding(check=name, is_good=False, found=f"{type(error).__name__}: {error}{_place(error)}")


def _place(error: Exception) -> str:
    """The innermost line of the user's own code."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not Path(frame.filename).is_relative_to(_OURS) and _LIBRARIES not in Path(frame.filename).parts
    ]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def main(arguments: Sequence[str]) -> int:
    (folder,) = arguments
    document = take_stdout()

    def work() -> None:
        for found in findings(RunDir(Path(folder))):
            document.write(json.dumps(asdict(found), ensure_ascii=False) + "\n")
            document.flush()

    return exit_status(work)


if __name__ == "__main__":
    process_main(main)
