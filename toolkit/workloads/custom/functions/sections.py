"""The sections of an experiment with three functions. Parameters become keys. Does not import torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, make_dataclass
from pathlib import Path
from typing import Any, ClassVar

from toolkit.config.fields import option
from toolkit.errors import DataError, UserError
from toolkit.system.output.few import few
from toolkit.system.output.nearest import guess
from toolkit.workload import (
    DataSection,
    Goal,
    Metric,
    ModelSection,
    NoData,
    OwnSections,
    Progress,
    UnfitTask,
    Unit,
    Violation,
)
from toolkit.workloads.custom.functions.made_sections import made_sections, optimizer_faults, schedule_faults
from toolkit.workloads.custom.functions.project.kept_files import not_kept, own_package, project_files
from toolkit.workloads.custom.functions.project.places import (
    PROJECT,
    as_module,
    file_name,
    import_faults,
    is_file,
    locate,
    names_code,
    root_of,
)
from toolkit.workloads.custom.functions.reading.parameters import REQUIRED, Parameter
from toolkit.workloads.custom.functions.reading.problems import Unfit
from toolkit.workloads.custom.functions.reading.signatures import LOSS, Functions, read_functions

#: Whether less or more of a metric is better.
GOALS: tuple[Goal, ...] = ("min", "max")
UNITS: tuple[Unit, ...] = ("number", "share")
KIND = "three_functions"
MODEL_KIND = "model_function"
_MODULE = ("task", "module")


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionsTask:
    """Three functions of a Python file: model, data and step."""

    kind: str = option(KIND)
    module: str = option()
    """The file, such as digits.py, or the module, such as my_project.digits."""
    class_name: str | None = option(None, added=True)
    """Class with the functions as methods, as in digits.py:Digits; null: functions of the file."""
    metrics: dict[str, str] = option(factory=dict, choices=GOALS, identity=False)
    """Goals of the metrics that `step` returns, unless evaluation.metric or the file gives them."""
    titles: dict[str, str] = option(factory=dict, identity=False, added=True)
    """Titles of metrics, in place of those in the file."""
    units: dict[str, str] = option(factory=dict, choices=UNITS, identity=False, added=True)
    """share: a metric between 0 and 1, shown in per cent; number: any other."""
    folder: str | None = option(".", path=True, identity=False)
    """Folder for relative file names in the functions; default: the working directory."""
    module_folder: str | None = option(None, path=True, identity=False, added=True)
    """Folder from which the module is imported; default: `folder`."""

    @property
    def code_folder(self) -> Path:
        """The folder in which the user's code is looked for."""
        # Runs of earlier versions have no module_folder.
        return Path(getattr(self, "module_folder", None) or self.folder or "")


class _Values:
    """Compares sections by value: a new and a stored experiment have different classes of sections."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Values) and self.values() == other.values()

    def __hash__(self) -> int:
        return hash(repr(sorted(self.values().items())))

    def values(self) -> dict[str, Any]:
        """Return the experiment's values by parameter; tuples become lists."""
        return {each.name: _listed(getattr(self, each.name)) for each in fields(self)}  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[Any, ...]:
        base = AnyModel if isinstance(self, AnyModel) else AnyData
        return _restored, (base, asdict(self))  # type: ignore[call-overload]


def _listed(value: Any) -> Any:
    return [_listed(each) for each in value] if isinstance(value, tuple | list) else value


@dataclass(frozen=True, slots=True)
class NothingPrepared:
    """Stands for a prepared set: the function `data` makes the samples when the run starts."""

    path: Path

    def summary(self) -> str:
        return f"nothing is prepared: data() of {self.path} makes the samples when the run starts"

    def to_json(self) -> dict[str, Any]:
        return {"path": str(self.path)}

    def split(self, name: str) -> Any:
        raise DataError(f"{name} is not known before the run starts: data() makes it")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnyData(_Values, NoData):
    """Arguments of the function `data` beside the split: its parameters are the keys."""

    prepared_dir: ClassVar[str] = "data/prepared"  # type: ignore[misc]

    def prepare(self, progress: Progress) -> NothingPrepared:
        return NothingPrepared(Path())

    def open_prepared(self, path: Path) -> NothingPrepared:
        return NothingPrepared(path)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnyModel(_Values, ModelSection):
    """Arguments of the function `model`: its parameters are the keys."""

    #: Whether the file has a function `prepare`; unknown for a stored experiment, so True.
    needs_preparation: ClassVar[bool] = True
    kind: str = option(MODEL_KIND)

    def arguments(self) -> dict[str, Any]:
        """Return the experiment's values by parameter."""
        values = self.values()
        del values["kind"]
        return values


def from_text(text: str) -> Mapping[str, Any] | None:
    """Return the task section for `digits.py`, `my_project.digits` or `digits.py:Digits`; else None."""
    if not names_code(text):
        return None
    module, _, class_name = str(text).partition(":")
    return {"kind": KIND, "module": module} | ({"class_name": class_name} if class_name else {})


def own_sections(tree: Mapping[str, Any], folders: Sequence[Path] | None) -> OwnSections:
    """Return the sections of an experiment. They are as the functions declare; as stored if folders is None.

    Raises UnfitTask.
    """
    task = tree["task"]
    module, class_name = task.get("module"), task.get("class_name")
    model, data = _model_of(tree), tree.get("data") or {}
    if folders is None or not isinstance(module, str):
        made = _stored(AnyData, data, prepare=_prepare_of(Path(str(module))))
        return _sections({"model": model, "data": data}, _stored(AnyModel, model), made)
    own_folder = task.get("module_folder")
    if own_folder is not None:
        if not isinstance(own_folder, str):
            problem = f"found {own_folder!r}, expected a folder"
            raise UnfitTask([Violation(key=("task", "module_folder"), problem=problem)])
        folders = [Path(own_folder).expanduser(), *folders]
    try:
        path = locate(module, folders)
        functions = read_functions(path, class_name if isinstance(class_name, str) else None)
        if faults := list(import_faults(module, path, functions.imports)):
            raise Unfit(faults)
    except Unfit as unfit:
        raise UnfitTask([*_faults(unfit, module, folders)]) from unfit
    except OSError as error:
        problem = f"{module} cannot be read: {error.strerror or error}"
        raise UnfitTask([Violation(key=_MODULE, problem=problem)]) from error
    violations = [
        *_metric_faults(functions, task, tree),
        *optimizer_faults(functions, tree),
        *schedule_faults(functions, tree),
    ]
    if taken := [*_taken_names(functions)]:
        raise UnfitTask([*taken, *violations])
    declared = functions.declared
    new = {
        **task,
        "module": file_name(module, path) if is_file(module) else module,
        "module_folder": None if is_file(module) else _beside(root_of(module, path), folders) or own_folder,
        "metrics": _goals(functions, task, tree),
        "titles": _with_written({each.name: each.title for each in declared if each.title}, task, "titles"),
        "units": _with_written(
            {each.name: "share" for each in declared if each.unit == "share"}, task, "units"
        ),
    }
    return _sections(
        {"task": new, "model": model, "data": data, **made_sections(functions, tree)},
        _made(AnyModel, map(_field, functions.model), needs_preparation=functions.prepare is not None),
        _made(AnyData, map(_field, _keys_of_data(functions)), prepare=_prepare_of(functions.path)),
        violations,
    )


def _beside(root: Path, folders: Sequence[Path]) -> str | None:
    """The folder of a module that was found beside the experiment file and not in the working folder."""
    is_found_there = root.absolute() in {folder.absolute() for folder in folders}
    return str(root.absolute()) if is_found_there and root.absolute() != Path().absolute() else None


def kept_files(experiment: Any) -> Iterable[tuple[Path, str]]:
    """The user's files that a run of the task keeps, each with its place in the folder of the code.

    Raises UserError if they are missing.
    """
    task: FunctionsTask = experiment.task
    try:
        path = locate(task.module, [task.code_folder])
    except Unfit as unfit:
        raise UserError(f"the task's code is gone: {unfit}") from unfit
    root = root_of(task.module, path)
    for file in project_files(task.module, path, root):
        yield file, f"{PROJECT}/{file.relative_to(root)}"


def files_not_kept(experiment: Any) -> Iterator[Violation]:
    """Find what the user's code may read or import, and would not find in a run."""
    task: FunctionsTask = experiment.task
    path = locate(task.module, [task.code_folder])
    root = root_of(task.module, path)
    if names := sorted(str(each.relative_to(root)) for each in not_kept(task.module, path, root)):
        problem = f"a run keeps no copy of {few(names, 5)} beside {path.name}"
        hint = "if the code reads them by `__file__`, name them relative to the working directory instead"
        yield Violation(key=_MODULE, problem=problem, hint=hint)
    if is_file(task.module) and (package := own_package(task.module, path, root)) is not None:
        problem = f"the run of a file keeps no copy of the package {package.name}, which its code imports"
        yield Violation(key=_MODULE, problem=problem, hint=as_module(path, package))


def metrics_of(task: FunctionsTask) -> Sequence[Metric]:
    """The metrics whose goal is known."""
    goals, units = {str(each): each for each in GOALS}, {str(each): each for each in UNITS}
    # Runs of earlier versions have no titles and units.
    titles, given = getattr(task, "titles", {}), getattr(task, "units", {})
    return [
        Metric(
            name=name,
            goal=goals[goal],
            title=str(titles.get(name, "")),
            unit=units[given.get(name, "number")],
        )
        for name, goal in task.metrics.items()
    ]


def _model_of(tree: Mapping[str, Any]) -> Any:
    """Return the model section. Its kind may be left out, because only one exists."""
    model = tree.get("model") or {}
    return {"kind": MODEL_KIND, **model} if isinstance(model, dict) else model


def _sections(
    tree: Mapping[str, Any],
    model: type[ModelSection],
    data: type[DataSection],
    violations: Sequence[Violation] = (),
) -> OwnSections:
    return OwnSections(tree=tree, data=data, models={MODEL_KIND: (model, "")}, violations=violations)


def _faults(unfit: Unfit, module: str, folders: Sequence[Path]) -> Iterator[Violation]:
    for each in unfit.problems:
        if not each.line:
            yield Violation(key=_MODULE, problem=f"{module}: {each.problem}", hint=each.hint)
            continue
        path, here = locate(module, folders), Path.cwd()
        file = str(path.relative_to(here) if path.is_relative_to(here) else path)
        yield Violation(key=_MODULE, problem=each.problem, hint=each.hint, file=file, line=each.line)


def _taken_names(functions: Functions) -> Iterator[Violation]:
    """Find parameters with names that the toolkit uses in their section."""
    for section, base, of in (
        ("model", AnyModel, functions.model), ("data", AnyData, _keys_of_data(functions)),
    ):  # fmt: skip
        for each in of:
            if hasattr(base, each.name):
                problem = f"{section} has the parameter {each.name}, a name that the toolkit uses itself"
                yield Violation(
                    key=(section, each.name), problem=problem, hint="give it another name",
                    file=str(functions.path), line=each.line,
                )  # fmt: skip


def _metric_and_goal(tree: Mapping[str, Any]) -> tuple[str, str]:
    """Return name and goal of evaluation.metric; empty if not given."""
    evaluation = tree.get("evaluation")
    metric = evaluation.get("metric") if isinstance(evaluation, dict) else None
    name, _, goal = metric.partition(":") if isinstance(metric, str) else ("", "", "")
    return name, goal


def _goals(functions: Functions, task: Mapping[str, Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declared goals of metrics, by name."""
    goals = _with_written({each.name: each.goal for each in functions.declared}, task, "metrics")
    name, goal = _metric_and_goal(tree)
    return {**({name: goal} if name != LOSS and goal in GOALS else {}), **goals}


def _with_written(said: Mapping[str, Any], task: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the file's declarations of its metrics, overridden by those of the experiment."""
    written = task.get(key)
    return {**said, **(written if isinstance(written, dict) else {})}


def _metric_faults(
    functions: Functions, task: Mapping[str, Any], tree: Mapping[str, Any]
) -> Iterator[Violation]:
    """Find an evaluation.metric that `step` does not return, or that has no goal."""
    name, goal = _metric_and_goal(tree)
    key = ("evaluation", "metric")
    if name in ("", LOSS):
        return
    if functions.metrics is not None and name not in functions.metrics:
        returned = ", ".join((LOSS, *functions.metrics))
        problem = (
            f"found {name}, but step ({functions.path.name}:{functions.lines['step']}) returns {returned}"
        )
        hint = guess(name, [LOSS, *functions.metrics])
        hint = hint or f'return {{"loss": …, "{name}": one_value_per_sample}}'
        yield Violation(key=key, problem=problem, hint=hint)
    elif not goal and name not in _goals(functions, task, tree):
        problem = f"found {name}, but its goal is not declared"
        yield Violation(key=key, problem=problem, hint=f"{name}:max, or {name}:min")


def _stored(base: type, values: Any, **more: Any) -> Any:
    """Return a section class that accepts the stored keys: they were checked before they were stored."""
    names = [name for name in values if name.isidentifier()] if isinstance(values, dict) else []
    return _made(base, ((name, Any, option()) for name in names if name != "kind"), **more)


def _prepare_of(file: Path) -> Callable[[Any, Progress], NothingPrepared]:
    """Return the method `prepare` of a section. The file is no attribute: a parameter may have any name."""
    return lambda self, progress: NothingPrepared(file)


def _keys_of_data(functions: Functions) -> Sequence[Parameter]:
    """The parameters of `data`, and the additional ones of `prepare`."""
    known = {each.name for each in functions.data}
    return [*functions.data, *(each for each in functions.prepare or () if each.name not in known)]


def _field(parameter: Parameter) -> tuple[str, Any, Any]:
    """Return the name, type and option of a parameter's field."""
    hint, limits = parameter.hint, {}
    if hint in (Path, Path | None):
        hint, limits = (str if hint is Path else str | None), {"path": True}
    if parameter.default is REQUIRED:
        return parameter.name, hint, option(**limits)
    if isinstance(parameter.default, list | dict):
        return parameter.name, hint, option(factory=lambda: parameter.default, **limits)
    return parameter.name, hint, option(parameter.default, **limits)


def _made(base: type, of: Iterable[tuple[str, Any, Any]], **more: Any) -> Any:
    return make_dataclass(
        base.__name__,
        of,
        bases=(base,),
        namespace={"__doc__": base.__doc__, "__module__": __name__, **more},
        frozen=True,
        slots=True,
        kw_only=True,
        eq=False,
    )


def _restored(base: type, values: dict[str, Any]) -> Any:
    """Return a section from a pickle or a copy: the generated class is in no module."""
    return _stored(base, values)(**values)
