"""The sections of an experiment, as the functions of the user's file declare them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.config.fields import option
from toolkit.workload import OwnSections, Progress, UnfitTask, Violation
from toolkit.workloads.custom.functions.project.places import (
    file_name,
    import_faults,
    is_file,
    is_module,
    locate,
    root_of,
)
from toolkit.workloads.custom.functions.reading.parameters import REQUIRED, Parameter
from toolkit.workloads.custom.functions.reading.problems import Unfit
from toolkit.workloads.custom.functions.reading.signatures import Functions, read_functions
from toolkit.workloads.custom.functions.sections.classes import (
    KIND,
    MODEL_KIND,
    AnyData,
    AnyModel,
    NothingPrepared,
    section_class,
    stored_section_class,
)
from toolkit.workloads.custom.functions.sections.metrics import metric_faults, metric_keys
from toolkit.workloads.custom.functions.sections.optimizer_schedule import (
    made_sections,
    optimizer_faults,
    schedule_faults,
)

_MODULE = ("task", "module")


def from_text(text: str) -> Mapping[str, Any] | None:
    """Return the task section for `digits.py`, `my_project.digits` or `digits.py:Digits`; else None."""
    module, colon, class_name = text.partition(":")
    if not is_module(module) or (colon and not class_name.isidentifier()):
        return None
    return {"kind": KIND, "module": module} | ({"class_name": class_name} if class_name else {})


def own_sections(tree: Mapping[str, Any], folders: Sequence[Path] | None) -> OwnSections:
    """Return the sections of an experiment. They are as the functions declare; as stored if folders is None.

    Raises UnfitTask.
    """
    module = tree["task"].get("module")
    model, data = tree.get("model") or {}, tree.get("data") or {}
    if isinstance(model, dict):
        # Its kind may be left out, because only one exists.
        model = {"kind": MODEL_KIND, **model}
    if folders is None or not isinstance(module, str):
        return OwnSections(
            tree={"model": model, "data": data},
            data=stored_section_class(AnyData, data, prepare=_prepare_of(Path(str(module)))),
            models={MODEL_KIND: (stored_section_class(AnyModel, model), "")},
        )
    folders = [*_own_folder(tree["task"]), *folders]
    functions = _functions(tree["task"], folders)
    violations = [
        *metric_faults(functions, tree["task"], tree),
        *optimizer_faults(functions, tree),
        *schedule_faults(functions, tree),
    ]
    if taken := [*_taken_names(functions)]:
        raise UnfitTask([*taken, *violations])
    task = {
        **tree["task"],
        **_place(module, functions.path, folders, tree["task"].get("module_folder")),
        **metric_keys(functions, tree["task"], tree),
    }
    of_model = section_class(
        AnyModel, map(_field, functions.model), needs_preparation=functions.prepare is not None
    )
    return OwnSections(
        tree={"task": task, "model": model, "data": data, **made_sections(functions, tree)},
        data=section_class(
            AnyData, map(_field, _keys_of_data(functions)), prepare=_prepare_of(functions.path)
        ),
        models={MODEL_KIND: (of_model, "")},
        violations=violations,
    )


def doubtful_functions(functions: Functions) -> Iterator[Violation]:
    """Find functions that the training does not call as they are written, such as `predict(batch, model)`."""
    for each in functions.doubts:
        problem = f"{functions.path.name}:{each.line}: {each.problem}"
        yield Violation(key=_MODULE, problem=problem, hint=each.hint)


def _own_folder(task: Mapping[str, Any]) -> list[Path]:
    """Return the folder that the experiment gives for its code, if it gives one. Raises UnfitTask."""
    folder = task.get("module_folder")
    if folder is None:
        return []
    if not isinstance(folder, str):
        problem = f"found {folder!r}, expected a folder"
        raise UnfitTask([Violation(key=("task", "module_folder"), problem=problem)])
    return [Path(folder).expanduser()]


def _functions(task: Mapping[str, Any], folders: Sequence[Path]) -> Functions:
    """Read the functions of a task's file. Raises UnfitTask."""
    module, class_name = task["module"], task.get("class_name")
    try:
        path = locate(module, folders)
        functions = read_functions(path, class_name if isinstance(class_name, str) else None)
        if faults := [*functions.disorders, *import_faults(module, path, functions.imports)]:
            raise Unfit(faults)
    except Unfit as unfit:
        raise UnfitTask([*_faults(unfit, module, folders)]) from unfit
    except OSError as error:
        problem = f"{module} cannot be read: {error.strerror or error}"
        raise UnfitTask([Violation(key=_MODULE, problem=problem)]) from error
    return functions


def _place(module: str, path: Path, folders: Sequence[Path], given: str | None) -> dict[str, str | None]:
    """Return the keys `module` and `module_folder` of a task whose code was found."""
    if is_file(module):
        return {"module": file_name(module, path), "module_folder": None}
    root = root_of(module, path).absolute()
    is_beside = root in {folder.absolute() for folder in folders} and root != Path().absolute()
    return {"module": module, "module_folder": str(root) if is_beside else given}


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
