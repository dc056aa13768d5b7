"""What must hold between keys that say how to train and what counts as best."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.config.kinds import metric_names
from toolkit.config.processes import world_size
from toolkit.config.rules.book import Broken, rule
from toolkit.config.schema import Evaluation, Experiment, Train
from toolkit.config.tree import suggest


@rule("task.kind", "evaluation.metric", "data.eval_slices")
def _metric(experiment: Experiment) -> Iterator[Broken]:
    name = experiment.evaluation.metric.rpartition(":")[0]
    metrics = metric_names(experiment.task, experiment.data)
    if name not in metrics:
        problem = f"found the metric {name}, expected one of {', '.join(metrics)}"
        yield Broken(key=("evaluation", "metric"), problem=problem, hint=suggest(name, metrics))


@rule("train.batch_max_length", "train.batch_size", "train.bucket_batches")
def _one_size_of_a_step(experiment: Experiment) -> Iterator[Broken]:
    yield from _either(experiment.train, "train", "batch_size", "bucket_batches")


@rule("evaluation.batch_max_length", "evaluation.batch_size")
def _one_size_of_an_evaluation(experiment: Experiment) -> Iterator[Broken]:
    yield from _either(experiment.evaluation, "evaluation", "batch_size")


def _either(section: Train | Evaluation, name: str, *of_samples: str) -> Iterator[Broken]:
    """The keys that count samples have no place beside the one that counts tokens."""
    budget = section.batch_max_length
    for key in of_samples:
        found = getattr(section, key)
        if budget is not None and found is not None:
            problem = f"found {found} beside {name}.batch_max_length {budget}, of which only one counts"
            yield Broken(key=(name, key), problem=problem, hint="set one of them to null")


@rule("train.batch_max_length", "train.bucket_span")
def _buckets(experiment: Experiment) -> Iterator[Broken]:
    train = experiment.train
    if train.bucket_span is not None and train.batch_max_length is None:
        problem = f"found {train.bucket_span}, but it is for train.batch_max_length, which is null"
        hint = "null: with train.batch_size, train.bucket_batches saves padding"
        yield Broken(key=("train", "bucket_span"), problem=problem, hint=hint)


@rule("train.reduction", "train.logical_ranks", "train.accumulation")
def _exact(experiment: Experiment) -> Iterator[Broken]:
    for name in ("logical_ranks", "accumulation"):
        number = getattr(experiment.train, name)
        if experiment.train.reduction == "exact" and number & (number - 1):
            below = 1 << (number.bit_length() - 1)
            problem = f"found {number}, but train.reduction exact takes a power of two"
            hint = f"{below} or {2 * below}, or train.reduction fast"
            yield Broken(key=("train", name), problem=problem, hint=hint)


@rule("train.precision", "train.device")
def _half(experiment: Experiment) -> Iterator[Broken]:
    if experiment.train.precision == "fp16" and experiment.train.device == "cpu":
        problem = "found fp16 with train.device cpu, expected train.device cuda or auto"
        yield Broken(key=("train", "precision"), problem=problem, hint="bf16 or fp32 on the CPU")


@rule(
    "train.parallel",
    "resources.hosts",
    "resources.groups",
    "resources.nodes",
    "resources.tasks_per_node",
)
def _parallel(experiment: Experiment) -> Iterator[Broken]:
    size, parallel = world_size(experiment.resources), experiment.train.parallel
    if parallel in ("dp", "none") and size > 1:
        problem = f"found {parallel}, which is for one process, but the resources make {size}"
        yield Broken(key=("train", "parallel"), problem=problem, hint="ddp, or resources of one process")


@rule("lr_scheduler.kind", "lr_scheduler.step_at")
def _steps_of_the_learning_rate(experiment: Experiment) -> Iterator[Broken]:
    scheduler = experiment.lr_scheduler
    if scheduler.step_at is not None and scheduler.kind != "step":
        problem = f"found shares of the steps, but lr_scheduler.kind is {scheduler.kind}, which has no steps"
        yield Broken(key=("lr_scheduler", "step_at"), problem=problem, hint="kind: step, or null")
