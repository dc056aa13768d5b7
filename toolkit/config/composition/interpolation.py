"""References in values: `${oc.env:NAME,default}`, `${other.key}`, resolved by OmegaConf.

OmegaConf takes 0.1 s of CPU to import, so it is imported only if a value has a reference.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from toolkit.config.composition.yaml_files import mapped
from toolkit.config.faults import Faults
from toolkit.config.origins import UNKNOWN, Key, leaves
from toolkit.config.secrets import is_secret, reference, with_secrets
from toolkit.system.output.nearest import guess

_ENVIRONMENT = re.compile(r"\$\{\s*oc\.env\s*:\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}")
#: A text with references to variables only: its value depends on nothing else in the tree.
_OF_VARIABLES = re.compile(r"(?:[^$\\]|\$\{oc\.env:[A-Za-z_][A-Za-z0-9_]*(?:,[\w ./~-]*)?\})*")
_VARIABLE = re.compile(r"\$\{oc\.env:([A-Za-z_][A-Za-z0-9_]*)")
_NOT_SET = re.compile(r"Environment variable '(.*?)' not found")
_NO_KEY = re.compile(r"Interpolation key '(.*?)' not found")

#: Our own resolver for variables, which does not insert secrets.
_RESOLVER = "stk.env"
_TO_VARIABLE = re.compile(r"\$\{\s*oc\.env\s*:")

#: Limits of references, far above the needs of any experiment.
_MAX_TEXT = 65_536
_MAX_REFERENCES = 100
_MAX_REFERENCES_TOGETHER = 3_000
_MAX_CHAIN = 20
_MAX_CHARACTERS = 1_000_000
_MAX_VALUES = 5_000

#: OmegaConf's mark of a missing value; a reference to it has its own error.
_MISSING = "???"


#: References that are resolved when the run starts: they stay unchanged.
_LATER = {"run": {"dir": r"\${run.dir}"}}


class Resolved(str):
    """The text that a reference resolved to. A variable is always text, so it may represent any scalar."""


def interpolate(tree: dict[str, Any], faults: Faults) -> dict[str, Any]:
    """A copy of the tree with every reference replaced by its value.

    Each one that fails is recorded and becomes UNKNOWN; so does a value `???`. A reference to a variable with
    the name of a secret stays unchanged. Raises ConfigError if the values exceed the limits.
    """
    source = mapped(_source(tree, (), faults), _of_variables)
    if not any(_has_reference(leaf) for _, leaf in leaves(source)):
        resolved: dict[str, Any] = _known(source)
        return resolved
    resolution = _Resolution(source, faults)
    for place in resolution.resolve():
        resolution.explain(place)
    return resolution.tree


def resolve_text(text: str, tree: dict[str, Any], key: Key, faults: Faults) -> str | None:
    """A text with its references replaced, absolute ones taken from the tree; None if it has a fault."""
    if "${" not in text:
        return text
    if not _parses(text, key, faults):
        return None
    source = {**_source(tree, (), Faults(faults.origins)), "\0text": text}
    resolution = _Resolution(source, faults)
    for place in resolution.resolve():
        if place.key == ("\0text",):
            resolution.explain(replace(place, shown=key))
    value = resolution.tree["\0text"]
    if value is not UNKNOWN:
        return str(with_secrets(str(value)))
    if key not in faults.unsure:
        faults.add(key, f"found {text!r}, which refers to a value that is not known before this include")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A text that holds references, and its place; shown is the key that messages name."""

    key: tuple[str | int, ...]
    shown: Key
    text: str


class _Resolution:
    """Resolves each reference once, when everything that it refers to is known.

    OmegaConf resolves the target again for each reference: a chain of forty keys, each with two references
    to the next one, would take years and exhaust the memory.
    """

    def __init__(self, source: dict[str, Any], faults: Faults) -> None:
        self.tree: dict[str, Any] = _known(source)
        self._faults = faults
        self._places = [
            _Place(key=key, shown=tuple(map(str, key)), text=text)
            for key, text in leaves(source)
            if _has_reference(text)
        ]
        self._config = _config(_without_references(source))
        self._characters = self._values = 0

    def resolve(self) -> list[_Place]:
        """Resolve all references that can be; return the other places, restored for `explain`."""
        if sum(place.text.count("${") for place in self._places) > _MAX_REFERENCES_TOGETHER:
            problem = f"an experiment can hold at most {_MAX_REFERENCES_TOGETHER:,} references"
            self._refuse(self._places[-1], problem)
        waiting = self._places
        for _ in range(_MAX_CHAIN):
            before, waiting = waiting, [place for place in waiting if not self._is_resolved(place)]
            if not waiting or len(waiting) == len(before):
                break
        else:
            self._refuse(waiting[0], f"it is more than {_MAX_CHAIN} references away from a value")
        for place in waiting:
            self._around(place)[place.key[-1]] = _for_omegaconf(place.text)
        return waiting

    def explain(self, place: _Place) -> None:
        """Record why a place that was not resolved cannot be."""
        from omegaconf.errors import InterpolationToMissingValueError, OmegaConfBaseException

        try:
            self._value(place)
        except InterpolationToMissingValueError:
            # The value referred to has its own fault.
            return
        except (OmegaConfBaseException, RecursionError) as error:
            _explain(place.text, error, place.shown, self._faults)

    def _is_resolved(self, place: _Place) -> bool:
        from omegaconf.errors import OmegaConfBaseException

        around, name = self._around(place), place.key[-1]
        around[name] = _for_omegaconf(place.text)
        try:
            value = self._value(place)
        except (OmegaConfBaseException, RecursionError):
            around[name] = _MISSING
            return False
        self._count(value, place)
        around[name] = literal(value)
        # A variable is always text: `null` means no value.
        _within(self.tree, place.key[:-1])[name] = None if value == "null" else mapped(value, _resolved)
        return True

    def _value(self, place: _Place) -> Any:
        from omegaconf import OmegaConf

        value = self._around(place)[place.key[-1]]
        if OmegaConf.is_config(value):
            value = OmegaConf.to_container(value, resolve=True, throw_on_missing=True)
        # Escaped references to variables are as they were written.
        ours, usual = f"${{{_RESOLVER}:", "${oc.env:"
        return mapped(value, lambda leaf: leaf.replace(ours, usual) if isinstance(leaf, str) else leaf)

    def _around(self, place: _Place) -> Any:
        return _within(self._config, place.key[:-1])

    def _count(self, value: Any, place: _Place) -> None:
        for _, text in leaves(value):
            self._values += 1
            self._characters += len(text) if isinstance(text, str) else 0
        if self._characters > _MAX_CHARACTERS or self._values > _MAX_VALUES:
            most = f"{_MAX_CHARACTERS:,} characters and {_MAX_VALUES:,} values"
            self._refuse(place, f"the values of references are too large: at most {most} together")

    def _refuse(self, place: _Place, problem: str) -> None:
        self._faults.add(place.shown, problem)
        self._faults.raise_any()


def _within(tree: Any, key: tuple[str | int, ...]) -> Any:
    for name in key:
        tree = tree[name]
    return tree


def _known(source: Any) -> Any:
    """A source with UNKNOWN in place of references and missing values."""
    return mapped(source, lambda value: UNKNOWN if value == _MISSING or _has_reference(value) else value)


def _without_references(source: Any) -> Any:
    def leaf(value: Any) -> Any:
        if _has_reference(value):
            return _MISSING
        # OmegaConf accepts no other class of text.
        return str(value) if isinstance(value, str) else value

    return mapped(source, leaf)


def literal(value: Any) -> Any:
    """A value with escaped `${`, so that OmegaConf returns it unchanged."""

    def escaped(leaf: Any) -> Any:
        return re.sub(r"(\\*)\$\{", r"\1\1\\${", leaf) if isinstance(leaf, str) else leaf

    return mapped(value, escaped)


def _for_omegaconf(text: str) -> str:
    """Send references to variables through our resolver, which keeps references to secrets."""
    return _TO_VARIABLE.sub(f"${{{_RESOLVER}:", text)


def _resolved(leaf: Any) -> Any:
    return Resolved(leaf) if isinstance(leaf, str) else leaf


def _variable(name: str, *default: Any) -> Any:
    """The value of a variable; for one with the name of a secret, the reference."""
    from omegaconf.resolvers import oc

    return reference(name) if is_secret(name) and name in os.environ else oc.env(name, *default)


def _of_variables(leaf: Any) -> Any:
    """Replace a text's references to variables, cached: a sweep has the same ones a thousand times."""
    if not (_has_reference(leaf) and _OF_VARIABLES.fullmatch(leaf)):
        return leaf
    settings = tuple(os.environ.get(name) for name in _VARIABLE.findall(leaf))
    return _with_variables(leaf, settings)


@lru_cache(maxsize=1024)
def _with_variables(text: str, settings: tuple[str | None, ...]) -> Any:
    """The text with its variables' values; unchanged if that fails, so that the fault is reported."""
    from omegaconf.errors import OmegaConfBaseException

    try:
        value = _config({"text": _for_omegaconf(text)})["text"]
    except OmegaConfBaseException:
        return text
    if isinstance(value, str) and ("${" in value or value in ("null", _MISSING)):
        return text
    return _resolved(value)


def _has_reference(leaf: Any) -> bool:
    return isinstance(leaf, str) and "${" in leaf


def _source(value: Any, key: Key, faults: Faults) -> Any:
    """Return the input for OmegaConf: the tree, with `???` for what is unknown or cannot be parsed."""
    if isinstance(value, dict):
        return {name: _source(inner, (*key, name), faults) for name, inner in value.items()}
    if isinstance(value, list):
        return [_source(inner, (*key, str(index)), faults) for index, inner in enumerate(value)]
    if value == _MISSING:
        faults.add(key, "found ???, expected a value")
    elif _has_reference(value):
        return value if _parses(value, key, faults) else _MISSING
    elif isinstance(value, str | int | float | None):
        return value
    # Not composed, or an include that was not read: its fault is recorded elsewhere.
    return _MISSING


def _config(source: dict[str, Any]) -> Any:
    from omegaconf import OmegaConf, __version__

    # Renamed in OmegaConf 2.4. Hydra 1.3 wants 2.3, where register_resolver is another function.
    is_old = __version__.startswith("2.3")
    register = OmegaConf.register_new_resolver if is_old else OmegaConf.register_resolver
    register(_RESOLVER, _variable, replace=True)
    return OmegaConf.create({**_LATER, **source})


def _parses(text: str, key: Key, faults: Faults) -> bool:
    if len(text) > _MAX_TEXT or text.count("${") > _MAX_REFERENCES:
        problem = f"such a text can hold at most {_MAX_REFERENCES} references and {_MAX_TEXT:,} characters"
        faults.add(key, problem, _LITERAL)
        return False
    reason = _fault_of(text)
    if reason:
        faults.add(key, f"found {text!r}, which is not a valid reference: {reason}", _LITERAL)
    return not reason


@lru_cache(maxsize=1024)
def _fault_of(text: str) -> str:
    """Say why a text is not a valid reference; empty if it is one."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        OmegaConf.create([text])
    except (OmegaConfBaseException, RecursionError) as error:
        return str(error).splitlines()[0]
    return ""


_LITERAL = r"write \${...} for the text itself"


def _explain(text: str, error: Exception, key: Key, faults: Faults) -> None:
    reason = str(error).splitlines()[0]
    unset = {name for name in _ENVIRONMENT.findall(text) if name not in os.environ}
    unset.update(_NOT_SET.findall(reason))
    for name in sorted(unset):
        hint = f"set it, or give a default: ${{oc.env:{name},value}}"
        faults.add(key, f"the environment variable {name} is not set", hint)
    if unset:
        return
    if "Unsupported interpolation type from_file" in reason:
        faults.add(key, f"found {text!r}: an include must be the whole value")
    elif match := _NO_KEY.search(reason):
        hint = f"add it: references cannot use defaults; ${{oc.env:{match[1]}}} is a variable; {_LITERAL}"
        hint = guess(match[1], ["run.dir"]) or hint
        faults.add(key, f"found {text!r}, but there is no key {match[1]} in the experiment", hint)
    else:
        kind = reason.partition("Unsupported interpolation type ")[2]
        hint = guess(kind, ["from_file", "oc.env"]) or _LITERAL
        faults.add(key, f"found {text!r}, which cannot be resolved: {reason}", hint)
