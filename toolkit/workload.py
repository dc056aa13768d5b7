"""The interface of a workload to the toolkit: its tasks, each with sections, rules and metrics.

A workload is a package. It registers a `Workload` under the entry-point group `slurm_toolkit.workloads`; ours
do so in `pyproject.toml`. Code is named, not imported, so that checking an experiment imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias, get_args

from toolkit.errors import DataError

Goal: TypeAlias = Literal["min", "max"]
Unit: TypeAlias = Literal["share", "number"]

_NOTHING_TO_PREPARE = "this task has no data that are prepared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric, such as `Metric(name="score", goal="max")`. All arguments are by name.

    name   as in metrics.jsonl, without the split; of a part of the data it is called name/part
    goal   min or max: whether less or more of it is better
    title  its name for people; default: the name with spaces
    unit   share (default): between 0 and 1, shown in per cent; or number
    twin   a metric that this one shows in another way: displayed if the two differ
    """

    name: str
    goal: Goal
    title: str = ""
    unit: Unit = "share"
    twin: str = ""

    def __post_init__(self) -> None:
        if self.goal not in get_args(Goal) or self.unit not in get_args(Unit):
            raise ValueError(
                f"Metric {self.name!r}: found goal {self.goal!r} and unit {self.unit!r}, expected the goal "
                "min or max, and the unit share or number"
            )

    @property
    def full_name(self) -> str:
        """The name and the goal, as `evaluation.metric` stores them."""
        return f"{self.name}:{self.goal}"


#: The metric that every task has.
LOSS = Metric(name="loss", goal="min", unit="number")


def shares(*names: str, **titles: str) -> tuple[Metric, ...]:
    """Shares to maximise: first `names`, then those with titles that differ from their names."""
    named = {**dict.fromkeys(names, ""), **titles}
    return tuple(Metric(name=name, goal="max", title=title) for name, title in named.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A violated rule: its key, what was found and is allowed, what to do.

    file, line   where it is, if not where the key was written; lines count from 1, 0 for none
    """

    key: tuple[str, ...]
    problem: str
    hint: str = ""
    file: str = ""
    line: int = 0


#: Yields the violations in an experiment.
Check = Callable[[Any], Iterator[Violation]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule over several keys of an experiment.

    reads            the keys; the rule is skipped if one of them already has a fault
    holds_for_stored whether it also applies to experiments that runs have recorded
    """

    reads: tuple[tuple[str, ...], ...]
    holds_for_stored: bool
    check: Check


def rule(*reads: str, holds_for_stored: bool = True) -> Callable[[Check], Rule]:
    """Make a rule from a function; `reads` are dotted keys."""

    def made(check: Check) -> Rule:
        keys = tuple(tuple(key.split(".")) for key in reads)
        return Rule(reads=keys, holds_for_stored=holds_for_stored, check=check)

    return made


#: Called with the progress of work: stage, amount done, total amount (None: not known yet).
Progress = Callable[[str, int, int | None], None]


def silent(stage: str, done: int, total: int | None) -> None:
    """Report no progress."""


class PreparedSet(Protocol):
    """Prepared data, as `DataSection.prepare` returns them."""

    @property
    def path(self) -> Path:
        """Their folder."""

    def summary(self) -> str:
        """Describe the data and what was left out, for people."""

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""

    def split(self, name: str) -> Any:
        """The samples of a split. Raises DataError for an unknown one."""


class DataSection:
    """The `data` section of a task: the data that it names, and how they are prepared.

    A subclass is a frozen dataclass. Its methods import slow modules late, and never torch.
    """

    __slots__ = ()
    #: The stage of preparation that a later attempt continues; empty: each attempt repeats all stages.
    RESUMABLE_STAGE: ClassVar[str] = ""
    prepared_dir: str

    def violations(self, *, is_trained: bool = False) -> Iterator[Violation]:
        """Find files that are missing or not as described.

        is_trained   a model exists, so the encoder of its texts was kept with its prepared data
        """
        return iter(())

    def warnings(self) -> Iterator[Violation]:
        """Find probable mistakes that do not stop the run. Called if there are no violations."""
        return iter(())

    def source_files(self, progress: Progress) -> Iterator[tuple[Path, str]]:
        """Yield the files that training reads, each with its SHA-256. Raises DataError."""
        raise NotImplementedError

    def prepared_place(self, progress: Progress) -> tuple[Path, str]:
        """Return folder and fingerprint of the prepared set, which need not exist. Raises DataError."""
        raise NotImplementedError

    def prepare(self, progress: Progress) -> PreparedSet:
        """Build the prepared set unless it exists, and open it. Raises DataError."""
        raise NotImplementedError

    def open_prepared(self, path: Path) -> PreparedSet:
        """Open a prepared set. Raises DataError."""
        raise NotImplementedError

    def other_meaning(self, prepared: Path | None, run: Path) -> str:
        """Return why the weights of another run mean something else with these data; empty if they do not.

        prepared   folder of the prepared set, or None
        run        folder of the other run
        """
        return ""

    def with_workers(self, count: int) -> Self:
        """This section, prepared by this number of processes unless it sets a number itself."""
        return self


def first_other(what: str, there: Sequence[str] | None, here: Sequence[str] | None) -> str:
    """Return the first place at which two lists differ, for `other_meaning`.

    Their lengths decide shapes of weights, which are compared anyway.
    """
    for number, (old, new) in enumerate(zip(there or (), here or (), strict=False), start=1):
        if old != new:
            return f"{what} {number} belongs to {old!r} there, to {new!r} in these data"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoData(DataSection):
    """The data of a task that declares none."""

    prepared_dir = ""

    def source_files(self, progress: Progress) -> Iterator[tuple[Path, str]]:
        return iter(())

    def prepared_place(self, progress: Progress) -> tuple[Path, str]:
        raise DataError(_NOTHING_TO_PREPARE)

    def prepare(self, progress: Progress) -> PreparedSet:
        raise DataError(_NOTHING_TO_PREPARE)

    def open_prepared(self, path: Path) -> PreparedSet:
        raise DataError(_NOTHING_TO_PREPARE)


class ModelSection:
    """The `model` section. A subclass is a frozen dataclass with a field `kind`."""

    __slots__ = ()
    #: Fields on which names and shapes of the weights depend.
    SHAPES: ClassVar[tuple[str, ...]] = ()
    kind: str

    def violations(self, experiment: Any, *, coming: Mapping[Path, Any] | None = None) -> Iterator[Violation]:
        """Find files and runs that are missing or do not fit. Not called once the model is trained.

        coming       experiments by the folders of their runs, which will have finished when this run begins
        """
        return iter(())

    def difference(self, other: Any) -> str:
        """Why the weights of another model section do not fit this one; empty if they may fit."""
        if self.kind != other.kind:
            return f"its model.kind is {other.kind}, here it is {self.kind}"
        for name in self.SHAPES:
            here, there = getattr(self, name), getattr(other, name)
            if here != there:
                return f"its model.{name} is {there}, here it is {here}"
        return ""

    def sizes(self, data: Any, meta: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
        """Yield (name, number) of items for which some tensor of the model has rows.

        data   the data section
        meta   the manifest of its prepared set; empty without one
        """
        return iter(())

    def files(self) -> Iterator[tuple[str, Path]]:
        """Yield the files, or folders, that a new model begins with, each with the key that names it."""
        return iter(())

    @property
    def needs_preparation(self) -> bool:
        """Whether something is computed with torch before training, once for all runs."""
        return False


def no_metrics(section: Any) -> Sequence[Metric]:
    """Metrics that a section adds: none."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSections:
    """The sections of one experiment, for a task with sections that depend on the code that it names.

    tree        sections of the experiment that replace those that were written
    data        dataclass of the data section
    models      as in TaskSpec
    violations  faults of other sections, which depend on the code too
    """

    tree: Mapping[str, Any]
    data: type[DataSection]
    models: Mapping[str, tuple[type[ModelSection], str]]
    violations: Sequence[Violation] = ()


class UnfitTask(Exception):
    """The code that a task section names cannot be used."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__("; ".join(each.problem for each in violations))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoModel(ModelSection):
    """The model of a task that declares none."""

    kind = ""


#: Called on each rank with the run (RunDir), the rank's World and a Stop; returns an Outcome. Collective.
Worker: TypeAlias = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """One kind of task.

    kind           its name: `task.kind`
    config         dataclass of the `task` section
    data           dataclass of the `data` section
    models         model kinds that the task takes: name -> (dataclass of the `model` section, code)
    task           "module:attribute" of the task's class
    metrics        metrics of an evaluation, which `evaluation.metric` may name; `loss` is one of them
    data_metrics   metrics that the data section adds
    task_metrics   metrics that the task section adds; also called with a stored section's keys as attributes
    metric_keys    the keys that these two read: if one has a fault, evaluation.metric is not checked
    more_metrics   metrics that not every evaluation has: of the data section, the test set, a report
    brief          names of metrics that views with little room show: by epoch, of runs side by side
    rules          rules over the keys of its sections
    file_check     finds keys of its sections that do not fit the data files, before anything is started;
                   imports nothing slow
    file_warnings  finds probable mistakes there that do not stop the run
    file_keys      keys of the data section that may differ for another file, which is only scored
    report         "module:attribute" of the task's part of the report of a run, a subclass of
                   toolkit.report.task_report.TaskReport; empty: nothing
    predictor      "module:class" of a toolkit.analysis.prediction.predictor.Predictor, for `stk predict`;
                   empty: none
    prediction_fault why a run predicts nothing, and what to do: from its stored experiment and its folder;
                   empty if it may. Imports nothing slow
    varied_predictions whether the predictions of two rows may differ in their number of values, so that a
                   table may not hold them
    kept_artifacts names below artifacts/ of files that using a run needs besides its weights and its code
    own_files      keys of the data section that name the run's own files besides `path`; null for other files
    from_text      makes the task section from a text in its place; None if it does not accept the text
    own_sections   the sections of one experiment, if they depend on what its task section names: from the
                   plain experiment, and the folders that its files may be relative to; None for folders means
                   a stored experiment, which was checked before. A mapping within a section of `makes` is a
                   Begun if overrides set only some of its entries. Raises UnfitTask. None: they are the same
                   for all
    kept_files     files that a run keeps with its code, from the checked experiment: each with its place in
                   the folder of the code. Raises UserError
    experiment     dataclass of the whole experiment, a subclass of toolkit.config.schema.Experiment; None:
                   that itself. A section that it declares with `absent` is not a key of it
    worker         "module:function" of the Worker that runs on each rank
    makes          sections, optimizer and lr_scheduler, that may have the kind `own`: the task's class makes
                   them by its methods `optimizer` and `schedule`, and own_sections checks them
    has_move       whether the task's class has the method `move`, so that train.workers may make its batches
    """

    kind: str
    config: type
    data: type[DataSection] = NoData
    models: Mapping[str, tuple[type[ModelSection], str]] = field(default_factory=dict)
    task: str = ""
    metrics: tuple[Metric, ...] = (LOSS,)
    data_metrics: Callable[[Any], Sequence[Metric]] = no_metrics
    task_metrics: Callable[[Any], Sequence[Metric]] = no_metrics
    metric_keys: tuple[str, ...] = ()
    more_metrics: tuple[Metric, ...] = ()
    brief: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    file_check: Check = lambda experiment: iter(())
    file_warnings: Check = lambda experiment: iter(())
    file_keys: tuple[str, ...] = ()
    report: str = ""
    predictor: str = ""
    prediction_fault: Callable[[Any, Path], str] = lambda experiment, folder: ""
    varied_predictions: bool = False
    kept_artifacts: tuple[str, ...] = ()
    own_files: tuple[str, ...] = ("train", "validation", "test")
    from_text: Callable[[str], Mapping[str, Any] | None] = lambda text: None
    own_sections: Callable[[Mapping[str, Any], Sequence[Path] | None], OwnSections] | None = None
    kept_files: Callable[[Any], Iterable[tuple[Path, str]]] = lambda experiment: ()
    experiment: type | None = None
    worker: str = "toolkit.training.worker:run_attempt"
    makes: tuple[str, ...] = ()
    has_move: bool = False

    def __post_init__(self) -> None:
        _check_tuples(self)

    def metrics_of(self, data: Any) -> tuple[Metric, ...]:
        """All metrics of an evaluation with a checked data section."""
        return (*self.metrics, *self.data_metrics(data))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The registration of a package.

    tasks      its kinds of tasks
    packages   importable packages that its runs keep a copy of, besides the core's packages
    commands   of `stk`: name -> "module:attribute" of a toolkit.command.Command, imported when needed
    evaluate   "module:attribute" of toolkit.command.EvaluateOptions; empty: none
    of_words   "module:function" that makes an experiment, a tree of plain values, from the words of a command
               line, for `stk run -- COMMAND`; empty: none
    of_function  the same for a user's function and its arguments, for `stk.submit(function, …)`: it is
               called with the function, a list and a dictionary; empty: none
    example    "module:function" that writes a small experiment with its data into a folder and returns its
               file, for `stk drill`; empty: none
    """

    name: str
    tasks: tuple[TaskSpec, ...]
    packages: tuple[str, ...] = ()
    commands: Mapping[str, str] = field(default_factory=dict)
    evaluate: str = ""
    of_words: str = ""
    of_function: str = ""
    example: str = ""

    def __post_init__(self) -> None:
        _check_tuples(self)
        if not all(isinstance(each, TaskSpec) for each in self.tasks):
            raise TypeError(f"Workload.tasks is {self.tasks!r}, expected a tuple of TaskSpec")
        if not isinstance(self.commands, Mapping):
            raise TypeError(f"Workload.commands is {self.commands!r}, expected a dict")


def _check_tuples(record: TaskSpec | Workload) -> None:
    """Raise TypeError for a tuple of one that was written without its comma."""
    for each in fields(record):
        value = getattr(record, each.name)
        if str(each.type).startswith("tuple") and not isinstance(value, tuple | list):
            what = f"{type(record).__name__}.{each.name} is a {type(value).__name__}"
            raise TypeError(f"{what}, expected a tuple, of one as (x,)")
