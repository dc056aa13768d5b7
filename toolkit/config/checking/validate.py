"""Build a typed Experiment from a plain tree, or report all its faults."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from toolkit.config.checking.coerce import CONVERSIONS, WRONG, flow_list, is_null, number_of
from toolkit.config.checking.descriptions import allowed, found, without_none
from toolkit.config.checking.goals import are_metrics_known, with_goal
from toolkit.config.checking.limits import bounded, cure, is_within, located
from toolkit.config.checking.rules import check_rules
from toolkit.config.composition.begun import Begun, NoEntry, filled, marked, with_entries
from toolkit.config.composition.json_files import NotJson, read_json_mapping
from toolkit.config.faults import Faults
from toolkit.config.fields import SWEEP, Limits, keys_of
from toolkit.config.fields import limits as limits_of
from toolkit.config.origins import UNKNOWN, Key, Origin, Origins
from toolkit.config.schema import Experiment, RunPolicy
from toolkit.config.secrets import referred, with_secrets
from toolkit.config.sections import experiment_type, sections
from toolkit.config.serialize import to_plain
from toolkit.errors import ConfigError, UserError
from toolkit.registry import task_kinds, task_section, unloaded
from toolkit.system.output.nearest import guess, nearest, suggest
from toolkit.workload import OwnSections, TaskSpec, UnfitTask, Violation


def check(tree: Mapping[str, Any], origins: Origins | None = None, *, is_stored: bool = False) -> Experiment:
    """Check a plain tree and return the experiment. Raises ConfigError with all faults.

    is_stored  whether it was checked and recorded before: rules only for new experiments are skipped
    """
    faults = Faults(origins or Origins(Origin("the experiment")))
    return check_into(tree, faults, is_stored=is_stored)


def check_into(tree: Mapping[str, Any], faults: Faults, *, is_stored: bool = False) -> Experiment:
    """As `check`, together with the faults of composition. Raises ConfigError if there are any."""
    experiment = _Checker(faults, is_stored).experiment(_without_sweep(tree, faults))
    for section in sections():
        if not faults.doubts(section.completed_from):
            completed = section.complete(getattr(experiment, section.name))
            experiment = replace(experiment, **{section.name: completed})
    if are_metrics_known(experiment, faults):
        experiment = with_goal(experiment)
    check_rules(experiment, faults, is_stored=is_stored)
    faults.raise_any()
    return experiment


def with_own_code(experiment: Experiment, place: str) -> Experiment:
    """Return an earlier experiment as the code of its task is now: new keys have their defaults.

    A section that the code makes, such as its optimizer, is stored with the defaults of all keys, such as
    weight_decay. The code need not take these.

    place   names the experiment in the faults, such as its run
    Raises ConfigError if the code does not take the values of the experiment.
    """
    faults = Faults(Origins(Origin(place)))
    folder = getattr(experiment.task, "folder", None)
    checked = _Checker(faults, folders=() if folder is None else (Path(folder),)).experiment(
        to_plain(experiment)
    )
    try:
        faults.raise_any()
    except ConfigError as error:
        if found := [each for each in error.faults if not _is_default_of_made(each.key, experiment)]:
            raise ConfigError(found) from None
    return checked


def _is_default_of_made(key: str, experiment: Experiment) -> bool:
    """Whether a key may be a default that was stored in a section that the task's code makes."""
    section, _, name = key.partition(".")
    is_made = section in task_kinds()[experiment.task.kind].makes
    return is_made and name != "kind" and hasattr(getattr(experiment, section), name)


def policy_in(resources: Mapping[str, Any]) -> RunPolicy:
    """The policy of stored resources; the default one if they are damaged."""
    whole: type = experiment_type()
    hint, faults = _hints(whole)["resources"], Faults(Origins(Origin("resources")))
    checked = _Checker(faults).value(hint, resources, ("resources",), Limits())
    if faults.unsure:
        return policy_in({})
    return checked if isinstance(checked, RunPolicy) else RunPolicy()


def _without_sweep(tree: Mapping[str, Any], faults: Faults) -> dict[str, Any]:
    """The tree without a section `sweep`, which is a fault here because it makes many runs."""
    one = dict(tree)
    if one.pop(SWEEP, None) is not None:
        problem = "this section makes many runs, but only one is expected here"
        hint = f"`stk sweep` makes them; {SWEEP}=null leaves it out, for the experiment alone"
        faults.add((SWEEP,), problem, hint, unsure=False)
    return one


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


class _Checker:
    """Builds dataclasses; None replaces a value with a fault, so that checking continues."""

    def __init__(self, faults: Faults, is_stored: bool = False, folders: Sequence[Path] = ()) -> None:
        self._faults = faults
        self._is_stored = is_stored
        #: Where the task's code is looked for first.
        self._folders = folders
        #: The types of all sections, once they are known.
        self._sections: dict[str, Any] = {}
        #: Keys that are given under a wrong name, so they are not missing.
        self._meant: set[Key] = set()

    def experiment(self, tree: dict[str, Any]) -> Experiment:
        tasks = task_kinds()
        if isinstance(text := tree.get("task"), str) and (section := task_section(text)) is not None:
            tree = {**tree, "task": section}
        row = tasks.get(self._kind_in(tree.get("task", MISSING), tasks, ("task",)))
        if row is None:
            # Whether they must be given is not known.
            self._faults.unsure |= {("model",), ("data",)}
            # Counting them loads all workloads, which takes long.
            if not tasks:
                raise UserError(
                    "no workload is installed, so no task is known. After an update install slurm-toolkit "
                    "again: `pip install -e .` in its folder"
                )
        begun = self._marked(tree)
        own = self._own_sections(row, tree, begun) if row else None
        tree, models = (dict(own.tree), own.models) if own else (_without_unknown(begun, row), {})
        # Without a kind of model there is no such section.
        model = self._kind_in(tree.get("model", MISSING), models, ("model",)) if models else ""
        kinds = {
            "task": row.config if row and own else None,
            "model": models[model][0] if model in models else None,
            "data": own.data if own else None,
        }
        whole: type = experiment_type(row.experiment if row else None)
        types = {**_hints(whole), **kinds}
        self._sections = {each.name: types[each.name] for each in keys_of(whole)}
        experiment: Experiment = self._section(whole, tree, (), kinds)
        return experiment

    def _own_sections(self, row: TaskSpec, tree: dict[str, Any], begun: dict[str, Any]) -> OwnSections | None:
        """The sections of this experiment; None if the code that its task names has faults.

        begun   the tree with the marks of what overrides began
        """
        if row.own_sections is None:
            return OwnSections(tree=begun, data=row.data, models=row.models)
        # The task's code needs the marks in the sections that it makes. The other sections are plain.
        made = {name: dict(begun[name]) for name in row.makes if isinstance(begun.get(name), dict)}
        # Relative file names are those of the folders of the task's files, and of the current one.
        files = [self._faults.origins.of(key).place for key in (("task",), ())]
        around = (*self._folders, *(Path(file).parent for file in files), Path())
        folders = None if self._is_stored else list(around)
        try:
            own = row.own_sections({**tree, **made}, folders)
        except UnfitTask as unfit:
            self._add(unfit.violations)
            # Whether they must be given is not known.
            self._faults.unsure |= {("task",), ("model",), ("data",)}
            return None
        self._add(own.violations)
        # The faults of a section that the task makes are known already.
        checked = {each.key[0] for each in own.violations}.intersection(row.makes)
        made |= {name: own.tree[name] for name in row.makes if name in own.tree}
        written = {**self._marked({**tree, **own.tree}), **made}
        return replace(own, tree={name: each for name, each in written.items() if name not in checked})

    def _marked(self, tree: Mapping[str, Any]) -> dict[str, Any]:
        return {name: marked(each, (name,), self._faults.origins) for name, each in tree.items()}

    def _add(self, violations: Iterable[Violation]) -> None:
        for each in violations:
            at = Origin(each.file, each.line) if each.file else None
            self._faults.add(each.key, each.problem, each.hint, at)

    def _kind_in(self, section: Any, table: Mapping[str, Any], key: Key) -> str:
        """The `kind` of a section, if it is in the table; else empty, and the fault is recorded."""
        if section is UNKNOWN:
            return ""
        if not isinstance(section, dict):
            problem = "is missing" if section is MISSING else found(section)
            expected = f"expected a section with the key kind, {_one_of(table)}"
            self._faults.add(key, f"{problem}, {expected}", _meant(section, table, key))
            return ""
        kind = section.get("kind")
        if isinstance(kind, str) and kind in table:
            return kind
        if kind is not UNKNOWN:
            problem = found(kind) if "kind" in section else "is missing"
            hint = guess(kind, table)
            if not hint and isinstance(kind, str) and key == ("task",):
                # One of these workloads may have the kind.
                hint = "; ".join(f"the workload {name} is missing: {why}" for name, why in unloaded().items())
                hint = hint or "if another package has this task, install that package here"
            self._faults.add((*key, "kind"), f"{problem}, {_one_of(table)}", hint)
        return ""

    def _section(
        self, cls: type, value: Any, key: Key, kinds: Mapping[str, type | None] | None = None
    ) -> Any:
        """A dataclass from a mapping; `kinds` gives the types of sections that a kind picks."""
        if value is None:
            # A heading with nothing under it.
            value = {}
        known = {each.name: each for each in keys_of(cls)}
        if not isinstance(value, dict):
            hint = ""
            if isinstance(value, str) and value.isidentifier() and "kind" in known:
                kind = nearest(value, limits_of(known["kind"]).choices) or value
                hint = f"{key[-1]}: {{kind: {kind}}}"
            if isinstance(value, str) and ":" in value:
                hint = "a key needs a space after its colon"
            self._faults.add(key, f"{found(value)}, expected {allowed(cls, Limits())}", hint)
            return None
        for name in value:
            if name in known:
                continue
            hint = self._place_of(name, known)
            self._faults.add((*key, name), "there is no such key", hint, unsure=False)
            self._meant |= {(*key, each) for each in known if hint == f"did you mean {each}?"}
        hints = {**_hints(cls), **(kinds or {})}
        checked = {name: self._field(each, hints[name], value, (*key, name)) for name, each in known.items()}
        return cls(**checked)

    def _place_of(self, name: str, known: Mapping[str, Field[Any]]) -> str:
        """A hint for an unknown key: the key that is meant, in this section or in another one."""
        if here := [each.name for each in known.values() if name in limits_of(each).known_as.split()]:
            return f"did you mean {here[0]}?"
        if name in self._sections:
            return f"did you mean {name} at the top?"
        sections = {section: cls for section, cls in self._sections.items() if is_dataclass(cls)}
        meant = [
            f"{section}.{each.name}"
            for section, cls in sections.items()
            for each in keys_of(cls)
            if name in (each.name, *limits_of(each).known_as.split())
        ]
        return f"did you mean {' or '.join(meant)}?" if 0 < len(meant) < 3 else suggest(name, known)

    def _field(self, of: Field[Any], hint: Any, section: dict[str, Any], key: Key) -> Any:
        if of.name in section:
            if hint is None:
                # Its kind is not known, so its content cannot be checked.
                self._faults.unsure.add(key)
                return None
            default = of.default if of.default_factory is MISSING else of.default_factory()
            try:
                return self.value(hint, section[of.name], key, limits_of(of), default)
            except NoEntry as error:
                self._faults.add(error.key, str(error))
                return None
        if of.default is not MISSING:
            return located(of.default, limits_of(of))
        if of.default_factory is not MISSING:
            return of.default_factory()
        if key in self._meant:
            self._faults.unsure.add(key)
        if key not in self._faults.unsure:
            expected = "a section (a mapping)" if hint is None else allowed(hint, limits_of(of))
            self._faults.add(key, f"is missing, expected {expected}")
        return None

    def value(self, hint: Any, value: Any, key: Key, limits: Limits, default: Any = None) -> Any:
        """Convert a value to its type; `default` gives the entries that overrides did not set."""
        if value is UNKNOWN:
            self._faults.unsure.add(key)
            return None
        hint, optional = without_none(hint)
        if optional and (value is None or (hint is not str and is_null(value))):
            return None
        if is_dataclass(hint):
            return self._section(hint, value, key)  # type: ignore[arg-type]
        if hint is Any and limits.kinds:
            return self._kinded(limits.kinds(), value, key)
        if get_origin(hint) is tuple:
            return self._list(hint, value, key, limits, default)
        if get_origin(hint) is dict:
            return self._mapping(hint, self._read(value, key, limits), key, limits)
        if hint is Any:
            return self._plain(filled(value, default, key), key)
        return self._scalar(hint, value, key, limits, optional)

    def _kinded(self, table: Mapping[str, type], value: Any, key: Key) -> Any:
        """A section with one dataclass per kind; a text is a kind with its defaults."""
        section = {"kind": value} if isinstance(value, str) else value
        kind = self._kind_in(section, table, key)
        return self._section(table[kind], section, key) if kind else None

    def _list(self, hint: Any, value: Any, key: Key, limits: Limits, default: Any) -> Any:
        known = default if isinstance(default, list | tuple) else ()
        items = with_entries(known, value, key) if isinstance(value, Begun) else flow_list(value)
        types = get_args(hint)
        any_length = types[-1] is Ellipsis
        if not isinstance(items, list | tuple) or not (any_length or len(items) == len(types)):
            self._faults.add(key, f"{found(value)}, expected {allowed(hint, limits)}")
            return None
        if any_length:
            types = (types[0],) * len(items)
        pairs = enumerate(zip(types, items, strict=True))
        return tuple(self.value(each, item, (*key, str(index)), limits) for index, (each, item) in pairs)

    def _read(self, value: Any, key: Key, limits: Limits) -> Any:
        """The mapping in a JSON file, if the value is the file's name."""
        if not limits.json_file or not isinstance(value, str):
            return value
        try:
            content = read_json_mapping(value)
        except NotJson as error:
            self._faults.add(key, str(error))
            return UNKNOWN
        for name in content:
            self._faults.origins.put((*key, name), Origin(value))
        return content

    def _mapping(self, hint: Any, value: Any, key: Key, limits: Limits) -> Any:
        if value is UNKNOWN:
            return None
        if not isinstance(value, dict):
            self._faults.add(key, f"{found(value)}, expected {allowed(hint, limits)}")
            return None
        if limits.rest:
            value = self._with_rest(value, key)
        inner = get_args(hint)[1]
        for name in value:
            self._unprintable(name, (*key, name))
        return {name: self.value(inner, item, (*key, name), limits) for name, item in value.items()}

    def _with_rest(self, shares: dict[str, Any], key: Key) -> dict[str, Any]:
        """Shares in which a null is replaced by the rest of 1 that the others leave."""
        nulls = [name for name, share in shares.items() if share is None or is_null(share)]
        others = [number_of(share) for name, share in shares.items() if name not in nulls]
        if not nulls or WRONG in others:
            return shares
        # Rounded: 0.8 and 0.1 leave 0.1, not 0.09999999999999998.
        rest = round(1 - sum(others), 12)
        if len(nulls) > 1:
            self._faults.add((*key, nulls[1]), f"found null here and for {nulls[0]}: only one takes the rest")
        elif rest < 0:
            problem = f"found null, which takes the rest, but the others add up to {sum(others):g}"
            self._faults.add((*key, nulls[0]), problem, "shares of 1, such as 0.8 and 0.1")
        return shares | {name: max(rest, 0.0) for name in nulls}

    def _plain(self, value: Any, key: Key) -> Any:
        """Any plain value, checked for content that cannot be written."""
        if isinstance(value, dict):
            return self._mapping(dict[str, Any], value, key, Limits())
        if isinstance(value, list):
            return [self.value(Any, item, (*key, str(index)), Limits()) for index, item in enumerate(value)]
        if isinstance(value, float) and not math.isfinite(value):
            self._faults.add(key, f"{found(value)}, expected a finite number")
        elif isinstance(value, str):
            self._unprintable(value, key)
            return with_secrets(str(value))
        return value

    def _scalar(self, hint: Any, value: Any, key: Key, limits: Limits, optional: bool) -> Any:
        if isinstance(value, str) and (names := referred(value)):
            return self._secret(hint, value, names, key, limits)
        if limits.amount and isinstance(value, float):
            value = str(value)
        result = CONVERSIONS[hint](value)
        limits = bounded(result, limits)
        if result is WRONG or not is_within(result, limits):
            expected = allowed(hint | None if optional else hint, limits)
            self._faults.add(key, f"{found(value)}, expected {expected}", cure(hint, value, limits))
            return None
        if isinstance(result, str):
            self._unprintable(result, key)
        return located(result, limits)

    def _secret(self, hint: Any, value: str, names: Sequence[str], key: Key, limits: Limits) -> Any:
        """A text with the value of a secret, which is not written: it must not become a name or a setting."""
        if hint is str and not (limits.choices or limits.pattern or limits.path or limits.hub):
            return with_secrets(value)
        problem = f"found the variable {names[0]}, which has the name of a secret: this key is recorded"
        self._faults.add(key, problem, "if it is not a secret, give the variable another name")
        return None

    def _unprintable(self, text: str, key: Key) -> None:
        """Refuse characters that no file name, variable or YAML file can hold."""
        if "\0" in text:
            self._faults.add(key, f"{found(text)}, which holds a NUL character")
        elif any("\ud800" <= character <= "\udfff" for character in text):
            self._faults.add(key, f"{found(text)}, which is not valid Unicode text")


def _without_unknown(tree: Mapping[str, Any], row: TaskSpec | None) -> dict[str, Any]:
    """The tree without the sections whose keys are unknown, because the task's kind or code has faults."""
    rows = [row] if row else [*task_kinds().values()]
    unknown = {name for each in rows for name in each.makes}
    if row is None:
        of_tasks = {each.name for of in rows for each in keys_of(experiment_type(of.experiment))}
        unknown |= of_tasks - {each.name for each in keys_of(experiment_type())}
    return {name: each for name, each in tree.items() if name not in unknown}


def _meant(value: Any, table: Mapping[str, Any], key: Key) -> str:
    """Return a hint for a text in place of a section; empty if its meaning is not known."""
    if not isinstance(value, str):
        return ""
    if value in table:
        return f"{key[-1]}: {{kind: {value}}}"
    is_file = key == ("task",) and value.isidentifier() and task_section(f"{value}.py") is not None
    return f"did you mean {value}.py?" if is_file else ""


def _one_of(table: Mapping[str, Any]) -> str:
    return f"expected one of {', '.join(table)}"
