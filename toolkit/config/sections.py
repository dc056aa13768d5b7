"""Sections of an experiment that other packages declare, such as where to run.

A package registers a `Section` under the entry-point group `slurm_toolkit.sections`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from typing import Any, Literal

from toolkit.config.fields import keys_of, option
from toolkit.config.origins import Key
from toolkit.config.schema import Experiment
from toolkit.registry import registered
from toolkit.workload import Rule

#: Entry points whose value is a Section.
GROUP = "slurm_toolkit.sections"

#: Settings that messages of the library advise to change, although only another package has a key for them.
Setting = Literal["excluded_hosts", "hosts", "memory", "ranks_per_host"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of the experiment.

    name           its key at the top level
    config         frozen dataclass of its keys, each with a default; RunPolicy or a subclass for `resources`
    is_identity    whether it can change the result of a run
    rules          rules over its keys and those of other sections
    complete       fills in the keys that follow from others
    completed_from the keys that `complete` reads; it is not called if one of them has a fault
    hints          for each of these settings a sentence with its key, appended to messages
    """

    name: str
    config: type
    is_identity: bool = False
    rules: tuple[Rule, ...] = ()
    complete: Callable[[Any], Any] = lambda section: section
    completed_from: tuple[Key, ...] = ()
    # Not hashed, as a dict cannot be.
    hints: Mapping[Setting, str] = field(default_factory=dict, hash=False)


@cache
def sections() -> tuple[Section, ...]:
    """The sections that installed packages declare."""
    return tuple(point.load() for point in registered(GROUP))


def with_hint(text: str, setting: Setting) -> str:
    """The text, followed by the sentence with a setting's key if a section has one. Raises nothing."""
    # A failure must be recorded even if the package that declares a section cannot be imported.
    with suppress(Exception):
        for section in sections():
            if setting in section.hints:
                return f"{text} {section.hints[setting]}"
    return text


def experiment_type(of: type[Experiment] | None = None) -> type[Experiment]:
    """The experiment, with the sections that installed packages declare as fields.

    of   the experiment class of a task that has its own
    """
    # Any, because mypy considers the class unhashable although its instances have a hash.
    whole: Any = of or Experiment
    return _experiment_type(whole, sections())


@cache
def _experiment_type(of: Any, declared: tuple[Section, ...]) -> type[Experiment]:
    """Return one class for the same sections, because experiments of two classes are never equal."""
    added = [
        (each.name, each.config, option(factory=each.config, identity=each.is_identity)) for each in declared
    ]
    return make_dataclass(
        "Experiment",
        added,
        bases=(of,),
        namespace={"__reduce__": _reduced, "__doc__": of.__doc__, "DECLARED_BY": of},
        frozen=True,
        slots=True,
        kw_only=True,
    )


def _reduced(experiment: Any) -> tuple[Any, ...]:
    """Support pickle and copy, which could not find the generated class in a module."""
    values = {each.name: getattr(experiment, each.name) for each in keys_of(experiment)}
    return _experiment, (values, experiment.DECLARED_BY)


def _experiment(values: dict[str, Any], of: type[Experiment]) -> Experiment:
    return experiment_type(of)(**values)
