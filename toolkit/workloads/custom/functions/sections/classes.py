"""The classes of the sections `task`, `data` and `model`, and subclasses with a function's parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, make_dataclass
from pathlib import Path
from typing import Any, ClassVar

from toolkit.config.fields import option
from toolkit.errors import DataError
from toolkit.workload import ModelSection, NoData, Progress
from toolkit.workloads.custom.functions.reading.metric_names import GOALS, UNITS

KIND = "three_functions"
MODEL_KIND = "model_function"


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
        return {name: value for name, value in self.values().items() if name != "kind"}


def section_class(base: type, of: Iterable[tuple[str, Any, Any]], **more: Any) -> Any:
    """Return a subclass of a section with fields: name, type and option of each.

    more  attributes of the class
    """
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


def stored_section_class(base: type, values: Any, **more: Any) -> Any:
    """Return a section class that accepts the stored keys: they were checked before they were stored."""
    names = [name for name in values if name.isidentifier()] if isinstance(values, dict) else []
    return section_class(base, ((name, Any, option()) for name in names if name != "kind"), **more)


def _restored(base: type, values: dict[str, Any]) -> Any:
    """Return a section from a pickle or a copy: the generated class is in no module."""
    return stored_section_class(base, values)(**values)
