"""Checks of a task's contract with the training loop. A failed check raises AssertionError."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from toolkit.config.schema import Evaluation as Batches
from toolkit.config.schema import Experiment
from toolkit.config.serialize import to_plain
from toolkit.distributed.process_group import Group
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json_lines
from toolkit.registry import metric_of, metrics_of
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import WEIGHTS, RunDir
from toolkit.system.world import World
from toolkit.task import Evaluation, Loss, Task, task_class
from toolkit.testing.trial_runs import launched
from toolkit.training.assembly.optimizers import build_optimizer
from toolkit.training.evaluation import evaluate
from toolkit.training.numerics.rng import seed_everything

CPU = torch.device("cpu")

#: Columns of metrics.jsonl that may differ between equal runs.
_TIMES = ("time", "samples_per_s", "tokens_per_s")
#: Maximum number of samples in a batch.
_FEW = 8
#: Limits of overfitting: steps, and two shares of the first loss. Training ends below the first share; the
#: check passes below the second.
_LEARNING_STEPS, _LEARNT, _FALLS = 300, 0.05, 0.5
#: Factors of the experiment's learning rate, which may be meant for many steps, and a rate to try last.
_FACTORS, _LAST_RATE = (1.0, 10.0, 100.0), 0.01


def check_task(experiment: Experiment, folder: Path) -> None:
    """Check the task of an experiment with its data and model, on the CPU.

    The experiment should be small: it is trained three times, on one and on two processes and with a stop.
    Its optimizer must also halve the loss of eight samples, with optimizer.lr, 10 or 100 times as much, or
    0.01.

    folder   for the runs, not used otherwise
    Raises AssertionError if a check fails.
    """
    task = open_task(experiment)
    for check in CHECKS:
        check(experiment, task, new_model(task))
    stops_and_processes_change_nothing(experiment, folder)


def open_task(experiment: Experiment) -> Task:
    """Prepare the data of an experiment, and open its task."""
    task_class(experiment).prepare(experiment)
    return task_class(experiment)(experiment)


def new_model(task: Task) -> nn.Module:
    """A model of the task, always with the same weights."""
    seed_everything(0)
    return task.model()


def batch_of(task: Task, *places: int, split: str = "train") -> Any:
    """The batch of the samples in a range, as numpy.arange takes it."""
    return task.collate(split, np.arange(*places), CPU)


def few(task: Task) -> int:
    """Return the number of samples in a batch of a check."""
    return min(_FEW, len(task.splits["train"]))


def evaluated(task: Task, model: nn.Module, split: str, batch_size: int = 5) -> Evaluation:
    """Score a split with one process, without a group."""
    found = evaluated_by(Group(World.single(), CPU), task, model, split, batch_size)
    assert found is not None
    return found


def evaluated_by(
    group: Group, task: Task, model: nn.Module, split: str, batch_size: int = 5
) -> Evaluation | None:
    """Score a split as a rank of a group."""
    return evaluate(task, model, split, group, Batches(batch_size=batch_size), None)


def _scored_splits(task: Task) -> list[str]:
    return [name for name in ("validation", "test") if name in task.splits]


def loss_is_a_finite_sum(experiment: Experiment, task: Task, model: nn.Module) -> None:
    """The loss of a batch is one finite number with its count, and gives gradients."""
    loss = task.loss(model, batch_of(task, few(task)))
    assert loss.total.ndim == 0, (
        f"the loss has the shape {list(loss.total.shape)}, expected one number: a sum"
    )
    assert torch.isfinite(loss.total), f"the loss of {few(task)} samples is {loss.total.item()}"
    assert loss.count > 0, "the loss counts nothing"
    lengths = int(task.splits["train"].lengths[: few(task)].sum())
    assert loss.tokens == lengths, f"the loss read {loss.tokens} tokens, the samples have {lengths}"
    assert loss.sums.shape == (len(task.train_sums),), f"{list(loss.sums.shape)} sums for {task.train_sums}"
    loss.total.backward()
    gradients = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    assert gradients, "no parameter of the model gets a gradient"
    for name, gradient in gradients.items():
        assert torch.isfinite(gradient).all(), f"the gradient of {name} is not finite"


def is_random(task: Task, model: nn.Module) -> bool:
    """Whether the loss of the same samples varies, as with augmentation: sums cannot be compared then."""
    model.eval()
    losses = [task.loss(model, batch_of(task, few(task))).total.item() for _ in range(3)]
    return len(set(losses)) > 1


def loss_adds_up_over_samples(experiment: Experiment, task: Task, model: nn.Module) -> None:
    """The loss of a batch is the sum of the losses of its samples."""
    model.eval()
    if is_random(task, model):
        return
    whole = task.loss(model, batch_of(task, few(task)))
    parts = [task.loss(model, batch_of(task, index, index + 1)) for index in range(few(task))]
    total = torch.stack([part.total.detach() for part in parts]).sum()
    torch.testing.assert_close(total, whole.total.detach(), rtol=1e-4, atol=1e-5)
    for name in ("count", "tokens"):
        found, expected = sum(getattr(part, name) for part in parts), getattr(whole, name)
        assert _are_equal(found, expected), f"{name}: {found} over single samples, {expected} in one batch"
    sums = torch.stack([part.sums for part in parts]).sum(0)
    torch.testing.assert_close(sums, whole.sums, rtol=1e-5, atol=1e-5)


def _are_equal(count: float, other: float) -> bool:
    """Whether two counts are equal: sums of fractional weights differ in the last bits."""
    return math.isclose(count, other, rel_tol=1e-6)


def scores_add_up_over_batches(experiment: Experiment, task: Task, model: nn.Module) -> None:
    """The sums of two batches add up to those of both together."""
    model.eval()
    number = few(task)
    if number < 2:
        return
    # Unequal parts: a mean of means would differ.
    cut = max(1, number // 3)
    whole, first, second = (
        task.score(model, batch_of(task, *places)) for places in ((number,), (cut,), (cut, number))
    )
    if not is_random(task, model):
        torch.testing.assert_close(first.sums + second.sums, whole.sums, rtol=1e-5, atol=1e-8)
    assert whole.sums.shape == (len(task.score_sums),), f"{list(whole.sums.shape)} sums for {task.score_sums}"
    count = task.loss(model, batch_of(task, number)).counted
    assert _are_equal(whole.sums[1].item(), count), f"a score counts {whole.sums[1]:g}, the loss {count}"


def outputs_come_once_in_the_order_of_samples(experiment: Experiment, task: Task, model: nn.Module) -> None:
    """Two ranks give the same bytes as one, and outputs for a sample do not depend on its batch."""
    for split in _scored_splits(task):
        alone, apart = evaluated(task, model, split), evaluated(task, model, split, batch_size=1)
        together = _by_two_ranks(task, model, split)
        np.testing.assert_array_equal(together.sums, alone.sums)
        names, others = sorted(alone.outputs), sorted(together.outputs)
        assert names == others, f"two ranks have the outputs {others} of {split}, one has {names}"
        for name, lists in alone.outputs.items():
            assert len(lists) == len(task.splits[split]), f"{len(lists)} outputs {name} of {split}"
            for found, expected in ((together.outputs[name], lists), (lists, apart.outputs[name])):
                np.testing.assert_array_equal(found.offsets, expected.offsets, f"lengths of {name}")
            np.testing.assert_array_equal(together.outputs[name].values, lists.values)
            np.testing.assert_allclose(lists.values, apart.outputs[name].values, rtol=1e-4, atol=1e-5)


@dataclass(frozen=True, slots=True)
class _OneOfTwo(Group):
    """A rank that keeps its messages to rank 0 until rank 0 runs."""

    sent: deque[bytes] = field(default_factory=deque)

    def send_to_main(self, content: bytes) -> None:
        self.sent.append(content)

    def receive(self, rank: int) -> bytes:
        return self.sent.popleft()


def _by_two_ranks(task: Task, model: nn.Module, split: str) -> Evaluation:
    second = _OneOfTwo(World(rank=1, size=2, local_rank=1, local_size=2), CPU)
    first = _OneOfTwo(World(rank=0, size=2, local_rank=0, local_size=2), CPU, sent=second.sent)
    assert evaluated_by(second, task, model, split) is None
    found = evaluated_by(first, task, model, split)
    assert found is not None
    return found


def metrics_are_declared(experiment: Experiment, task: Task, model: nn.Module) -> None:
    """Every metric of every split is declared, and the validation split has all declared metrics."""
    task_section = to_plain(experiment.task)
    declared = {each.name for each in metrics_of(experiment.task, experiment.data)}
    for split in _scored_splits(task):
        result = evaluated(task, model, split)
        metrics = task.metrics(split, result)
        unknown = [name for name in metrics if name not in declared and metric_of(name, task_section) is None]
        assert unknown == [], f"metrics of {split} that the task does not declare: {', '.join(unknown)}"
        if split == "validation":
            assert metrics.keys() == declared, f"found {sorted(metrics)}, declared are {sorted(declared)}"
        infinite = [name for name, value in metrics.items() if not np.isfinite(value)]
        assert infinite == [], f"not finite in {split}: {', '.join(infinite)}"
        mean = result.sums[0] / result.sums[1]
        assert np.isclose(metrics["loss"], mean), (
            f"the loss of {split} is {metrics['loss']}, its sums say {mean}"
        )
    loss = task.loss(model, batch_of(task, few(task)))
    sums = dict(zip(task.train_sums, loss.sums.tolist(), strict=True))
    training = task.train_metrics(sums, loss.counted)
    assert "loss" not in training, "the loss of training is added by the loop"
    unknown = [name for name in training if name not in declared and metric_of(name, task_section) is None]
    assert unknown == [], f"metrics of training that the task does not declare: {', '.join(unknown)}"


def same_seed_makes_the_same_model(experiment: Experiment, task: Task, model: nn.Module) -> None:
    """Weights depend only on torch's generator."""
    # Not the given model: earlier checks may have changed its running averages.
    first, again = new_model(task).state_dict(), new_model(task).state_dict()
    different = [name for name, value in first.items() if not torch.equal(value, again[name])]
    assert different == [], f"two models of the same seed differ in {', '.join(different)}"


def few_samples_can_be_learnt_by_heart(experiment: Experiment, task: Task, model: nn.Module) -> None:
    """The loss of eight samples can be halved by training on them; not checked for one below 0."""
    with suppress(NotMade):
        learnt_by_heart(experiment, task, seconds=math.inf)


class NotMade(Exception):
    """A check that cannot be made, and why."""


def learnt_by_heart(experiment: Experiment, task: Task, *, seconds: float) -> str:
    """Train on a few samples with the experiment's optimizer; report how far their loss fell.

    seconds  after which training ends, for each learning rate
    Raises AssertionError if the loss did not fall below half with the experiment's learning rate, with
    greater ones, or with 0.01; NotMade for a loss below 0.
    """
    best, own = "", experiment.optimizer.lr
    rates = [*dict.fromkeys([*(times * own for times in _FACTORS), _LAST_RATE])]
    for lr in rates:
        first, last, steps = _learn(experiment, task, lr, seconds)
        best = best or f"the loss of {few(task)} samples fell from {first:.4g} to {last:.4g} only"
        if last < _FALLS * first:
            rate = f" at a learning rate of {lr:g}" if lr != own else ""
            return f"loss of {few(task)} samples: {first:.4g}, after {steps} steps{rate} {last:.4g}"
    raise AssertionError(
        f"{best}, at learning rates from {min(rates):g} to {max(rates):g}. The model may not see what "
        "the labels depend on, or its output may not reach the loss"
    )


def _learn(experiment: Experiment, task: Task, lr: float, seconds: float) -> tuple[float, float, int]:
    """Overfit a few samples; return their loss before and after, and the number of steps."""
    model = new_model(task)
    model.eval()  # without dropout
    optimizer = build_optimizer(model, replace(experiment.optimizer, lr=lr, weight_decay=0.0), task)
    batch = batch_of(task, few(task))
    first = last = mean_of(task.loss(model, batch))
    if first < 0:
        raise NotMade(f"the loss is {first:.4g}: half of a loss below 0 is higher")
    began, steps = time.monotonic(), 0
    while steps < _LEARNING_STEPS and time.monotonic() - began < seconds and last >= _LEARNT * first:
        optimizer.zero_grad()
        loss = task.loss(model, batch)
        (loss.total / loss.count).backward()
        optimizer.step()
        last, steps = mean_of(loss), steps + 1
    return first, last, steps


def mean_of(loss: Loss) -> float:
    """Divide the sum by its count."""
    return float(loss.total.detach()) / loss.counted


Check = Callable[[Experiment, Task, nn.Module], None]
#: Checks of a task and a new model of it.
CHECKS: Sequence[Check] = (
    loss_is_a_finite_sum,
    loss_adds_up_over_samples,
    scores_add_up_over_batches,
    outputs_come_once_in_the_order_of_samples,
    metrics_are_declared,
    same_seed_makes_the_same_model,
    few_samples_can_be_learnt_by_heart,
)


def stops_and_processes_change_nothing(experiment: Experiment, folder: Path) -> None:
    """One process, two processes, and a run that was stopped and continued end with the same bytes."""
    exact = replace(experiment, train=replace(experiment.train, reduction="exact", device="cpu"))
    whole = _train(exact, folder / "one", 1)
    same_results(_train(exact, folder / "two", 2), whole)
    _train(exact, folder / "stopped", 2, "term at=forward step=2 rank=0 attempt=1")
    same_results(_train(exact, folder / "stopped", 1), whole)


def _train(experiment: Experiment, folder: Path, processes: int, fault: str = "") -> RunDir:
    run = create_run(experiment, folder)
    code = launched(run, processes, fault)
    expected = ExitCode.INTERRUPTED if fault else 0
    assert code == expected, f"training ended with {code}, expected {expected}: see the logs in {run.path}"
    return run


def same_results(run: RunDir, other: RunDir) -> None:
    """Raise AssertionError unless two finished runs have the same weights and the same curve."""
    one, two = ((each.best / WEIGHTS).read_bytes() for each in (run, other))
    assert one == two, f"the weights of {run.path} and {other.path} differ"
    assert _curve(run) == _curve(other), f"the metrics of {run.path} and {other.path} differ"


def _curve(run: RunDir) -> list[dict[str, Any]]:
    lines = read_json_lines(run.metrics)
    return [{name: value for name, value in line.items() if name not in _TIMES} for line in lines]
