"""Rules over several keys of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from toolkit.config.checking.goals import RULES as METRIC_RULES
from toolkit.config.checking.goals import are_metrics_known
from toolkit.config.faults import Faults
from toolkit.config.library_arguments import (
    OPTIMIZERS,
    OWN,
    SCHEDULE_KEYS,
    SCHEDULES,
    SECTION_KEYS,
    LibraryCallable,
    arguments_of,
    fits,
)
from toolkit.config.schema import Evaluation, Experiment, LrScheduler, Optimizer, Train
from toolkit.config.secrets import RECORDED, masked, referred, texts
from toolkit.config.sections import sections
from toolkit.config.serialize import to_plain
from toolkit.registry import task_kinds
from toolkit.system.output.nearest import guess
from toolkit.workload import Violation, rule


@rule("train.batch_max_length", "train.batch_size", "train.bucket_batches")
def _one_size_of_a_step(experiment: Experiment) -> Iterator[Violation]:
    yield from _either(experiment.train, "train", "batch_size", "bucket_batches")


@rule("evaluation.batch_max_length", "evaluation.batch_size")
def _one_size_of_an_evaluation(experiment: Experiment) -> Iterator[Violation]:
    yield from _either(experiment.evaluation, "evaluation", "batch_size")


def _either(section: Train | Evaluation, name: str, *of_samples: str) -> Iterator[Violation]:
    """Find keys that count samples beside the key that counts tokens."""
    budget = section.batch_max_length
    for key in of_samples:
        found = getattr(section, key)
        if budget is not None and found is not None:
            problem = f"found {found} beside {name}.batch_max_length {budget}, but only one may be set"
            yield Violation(key=(name, key), problem=problem, hint="set one of them to null")


@rule("train.batch_max_length", "train.bucket_span")
def _buckets(experiment: Experiment) -> Iterator[Violation]:
    train = experiment.train
    if train.bucket_span is not None and train.batch_max_length is None:
        problem = f"found {train.bucket_span}, but it is for train.batch_max_length, which is null"
        hint = "null: with train.batch_size, train.bucket_batches saves padding"
        yield Violation(key=("train", "bucket_span"), problem=problem, hint=hint)


@rule("train.reduction", "train.logical_ranks", "train.accumulation")
def _exact(experiment: Experiment) -> Iterator[Violation]:
    for name in ("logical_ranks", "accumulation"):
        number = getattr(experiment.train, name)
        if experiment.train.reduction == "exact" and number & (number - 1):
            below = 1 << (number.bit_length() - 1)
            problem = f"found {number}, but train.reduction exact takes a power of two"
            hint = f"{below} or {2 * below}, or train.reduction fast"
            yield Violation(key=("train", name), problem=problem, hint=hint)


@rule("train.workers", "task.kind")
def _workers(experiment: Experiment) -> Iterator[Violation]:
    kind = experiment.task.kind
    if experiment.train.workers and not task_kinds()[kind].has_move:
        problem = f"found {experiment.train.workers}, but a task of kind {kind} makes its own batches"
        yield Violation(key=("train", "workers"), problem=problem, hint="0")


@rule("train.precision", "train.device")
def _half(experiment: Experiment) -> Iterator[Violation]:
    if experiment.train.precision == "fp16" and experiment.train.device == "cpu":
        problem = "found fp16 with train.device cpu, expected train.device cuda or auto"
        yield Violation(key=("train", "precision"), problem=problem, hint="bf16 or fp32 on the CPU")


@rule("train.steps", "train.epochs", "train.eval_steps", "train.eval_epochs")
def _steps_or_epochs(experiment: Experiment) -> Iterator[Violation]:
    for one, other in (("steps", "epochs"), ("eval_steps", "eval_epochs")):
        number, excluded = getattr(experiment.train, one), getattr(experiment.train, other)
        if number is not None and excluded is not None:
            problem = f"found {number}, but train.{other} is {excluded}"
            yield Violation(key=("train", one), problem=problem, hint="set one of them, the other to null")


@rule("train.compile", "train.reduction", "train.deterministic", "train.parallel")
def _compiled(experiment: Experiment) -> Iterator[Violation]:
    train = experiment.train
    if train.compile != "on":
        return
    if train.reduction == "exact":
        problem = "found on, but train.reduction is exact: compiled, rounding depends on a part's size"
        yield Violation(key=("train", "compile"), problem=problem, hint="auto, or train.reduction fast")
    if train.parallel == "dp":
        problem = "found on, but train.parallel is dp, whose copies of the model are not compiled"
        yield Violation(key=("train", "compile"), problem=problem, hint="train.parallel=ddp")
    if train.deterministic:
        problem = (
            "found on, but train.deterministic is true: compiled kernels depend on the lengths seen before, "
            "so a resumed run would have other bytes"
        )
        yield Violation(key=("train", "compile"), problem=problem, hint="set train.deterministic=false too")


@rule("optimizer")
def _optimizer(experiment: Experiment) -> Iterator[Violation]:
    optimizer = experiment.optimizer
    if optimizer.kind == OWN:
        yield from _own("optimizer", experiment)
        return
    yield from _without_effect("optimizer", optimizer, Optimizer(), SECTION_KEYS)
    own = [name for name, kinds in SECTION_KEYS.items() if optimizer.kind in kinds]
    yield from _arguments(
        "optimizer", optimizer.arguments, OPTIMIZERS[optimizer.kind], [*own, "lr", "weight_decay"]
    )


@rule("optimizer", holds_for_stored=False)
def _values(experiment: Experiment) -> Iterator[Violation]:
    optimizer = experiment.optimizer
    for index, beta in enumerate(optimizer.betas if optimizer.kind in SECTION_KEYS["betas"] else ()):
        if not 0 <= beta < 1:
            problem = f"found {beta:g}, expected a number from 0 to below 1"
            yield Violation(key=("optimizer", "betas", str(index)), problem=problem)
    if optimizer.kind == "sgd" and optimizer.arguments.get("nesterov") is True:
        if not optimizer.momentum:
            problem = "found 0, but nesterov needs a momentum"
            yield Violation(key=("optimizer", "momentum"), problem=problem, hint="such as 0.9")
        if damping := optimizer.arguments.get("dampening"):
            problem = f"found {damping}, but nesterov takes none"
            yield Violation(key=("optimizer", "arguments", "dampening"), problem=problem, hint="leave it out")


@rule("lr_scheduler")
def _schedule(experiment: Experiment) -> Iterator[Violation]:
    scheduler = experiment.lr_scheduler
    if scheduler.kind == OWN:
        yield from _own("lr_scheduler", experiment)
        return
    yield from _without_effect("lr_scheduler", scheduler, LrScheduler(), SCHEDULE_KEYS)
    if scheduler.step_at is not None and scheduler.step_epochs != LrScheduler().step_epochs:
        problem = f"found {scheduler.step_epochs:g}, but lr_scheduler.step_at is given, which is used instead"
        yield Violation(key=("lr_scheduler", "step_epochs"), problem=problem, hint="leave one of them out")
    if scheduler.kind in SCHEDULES:
        yield from _arguments("lr_scheduler", scheduler.arguments, SCHEDULES[scheduler.kind], ["warmup"])
    elif scheduler.arguments:
        problem = f"found arguments, but lr_scheduler.kind {scheduler.kind} takes none"
        hint = f"for {', '.join(SCHEDULES)}"
        yield Violation(key=("lr_scheduler", "arguments"), problem=problem, hint=hint)


@rule("lr_scheduler", "optimizer.lr", holds_for_stored=False)
def _floor(experiment: Experiment) -> Iterator[Violation]:
    scheduler = experiment.lr_scheduler
    end, lr = scheduler.arguments.get("lr_end", 0), experiment.optimizer.lr
    if scheduler.kind == "polynomial" and fits(end, "float") and end >= lr:
        problem = f"found {end}, expected less than optimizer.lr, {lr}"
        yield Violation(key=("lr_scheduler", "arguments", "lr_end"), problem=problem)
    given = [scheduler.arguments.get(name) is not None for name in ("min_lr", "min_lr_rate")]
    if scheduler.kind == "cosine_with_min_lr" and sum(given) != 1:
        problem = f"{scheduler.kind} needs exactly one of min_lr and min_lr_rate, found {sum(given)}"
        yield Violation(key=("lr_scheduler", "arguments"), problem=problem, hint="such as {min_lr_rate: 0.1}")


def _without_effect(
    name: str, section: Any, usual: Any, keys: Mapping[str, frozenset[str]]
) -> Iterator[Violation]:
    """Find keys that are set although the kind of their section does not take them."""
    for key, kinds in keys.items():
        if (value := getattr(section, key)) != getattr(usual, key) and section.kind not in kinds:
            problem = f"found {value}, but {name}.kind {section.kind} does not take it"
            yield Violation(key=(name, key), problem=problem, hint=f"it is for {', '.join(sorted(kinds))}")


def _own(section: str, experiment: Experiment) -> Iterator[Violation]:
    """Find a section that the task cannot make itself; a task that can has already checked it."""
    kind = experiment.task and experiment.task.kind
    if kind and section not in task_kinds()[kind].makes:
        yield Violation(key=(section, "kind"), problem=f"found {OWN}, but task.kind {kind} makes none itself")


def _arguments(
    section: str, given: Mapping[str, Any], of: LibraryCallable, keys: Sequence[str]
) -> Iterator[Violation]:
    """Yield arguments that do not fit the signature in the installed library.

    keys  of the section itself, not of its arguments
    """
    try:
        known = arguments_of(of)
    except LookupError as error:
        yield Violation(key=(section, "kind"), problem=str(error), hint="install a newer release of it")
        return
    for name in [each for each, argument in known.items() if argument.is_needed and each not in given]:
        problem = f"{of.package}'s {of.name} needs the argument {name}"
        yield Violation(key=(section, "arguments"), problem=problem, hint=f"{section}.arguments.{name}=…")
    for name, value in given.items():
        key = (section, "arguments", name)
        if name in keys:
            problem = "found a key of the section itself"
            yield Violation(key=key, problem=problem, hint=f"set {section}.{name}")
        elif name not in known:
            problem = f"{of.package}'s {of.name} has no such argument that can be set here"
            others = ", ".join(each for each in known if each not in keys) or "none"
            yield Violation(key=key, problem=problem, hint=guess(name, known) or f"it has {others}")
        elif not fits(value, known[name].annotation):
            problem = f"found {value!r}, expected {known[name].annotation}"
            yield Violation(key=key, problem=problem, hint=f"see {of.name} of {of.package}")


@rule()
def _addresses(experiment: Experiment) -> Iterator[Violation]:
    for key, text in texts(to_plain(experiment)):
        if masked(text) != text and not referred(text):
            problem = f"found {masked(text)!r}, a URL with a password: {RECORDED}"
            hint = "put the address into a variable such as DATABASE_URL, and write ${oc.env:DATABASE_URL}"
            yield Violation(key=key, problem=problem, hint=hint)


_RULES = (
    _one_size_of_a_step,
    _one_size_of_an_evaluation,
    _buckets,
    _exact,
    _workers,
    _half,
    _steps_or_epochs,
    _compiled,
    _optimizer,
    _values,
    _schedule,
    _floor,
    _addresses,
)


def check_rules(experiment: Experiment, faults: Faults, *, is_stored: bool = False) -> None:
    """Record every violated rule: the general ones, those of the task, those of other packages' sections."""
    of_task = () if experiment.task is None else task_kinds()[experiment.task.kind].rules
    of_sections = chain.from_iterable(section.rules for section in sections())
    of_metric = METRIC_RULES if are_metrics_known(experiment, faults) else ()
    # Chosen first: the fault of one rule must not keep the others from being applied.
    rules = (*of_task, *of_sections, *of_metric, *_RULES)
    applicable = [each for each in rules if not faults.doubts(each.reads)]
    for each in applicable:
        if each.holds_for_stored or not is_stored:
            for violation in each.check(experiment):
                faults.add(violation.key, violation.problem, violation.hint)
