"""References in values: `${oc.env:NAME,default}`, `${other.key}`, resolved by OmegaConf.

OmegaConf takes 0.1 s of CPU to import, so it is imported only where a value holds a reference.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Any

from toolkit.config.tree import UNKNOWN, Faults, Key

_ENVIRONMENT = re.compile(r"\$\{\s*oc\.env\s*:\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}")
#: A text whose references name variables only: what it comes to depends on nothing else in the tree.
_OF_VARIABLES = re.compile(r"(?:[^$\\]|\$\{oc\.env:[A-Za-z_][A-Za-z0-9_]*(?:,[\w ./~-]*)?\})*")
_VARIABLE = re.compile(r"\$\{oc\.env:([A-Za-z_][A-Za-z0-9_]*)")
_NOT_SET = re.compile(r"Environment variable '(.*?)' not found")
_NO_KEY = re.compile(r"Interpolation key '(.*?)' not found")

#: What OmegaConf calls a value that is still to be given; a reference to it fails in its own way.
_MISSING = "???"


def interpolate(tree: dict[str, Any], faults: Faults) -> dict[str, Any]:
    """A copy of the tree with every reference replaced by its value.

    Each one that fails is recorded and leaves UNKNOWN; so does a value `???`.
    """
    source = _of_variables(_source(tree, (), faults))
    config = _config(source) if _has_reference(source) else None
    resolved: dict[str, Any] = _resolve(source, config, (), faults)
    return resolved


def resolve_text(text: str, tree: dict[str, Any], key: Key, faults: Faults) -> str | None:
    """A text with its references replaced, absolute ones taken from the tree; None if it has a fault."""
    if "${" not in text:
        return text
    if not _parses(text, key, faults):
        return None
    config = _config({**_source(tree, (), Faults(faults.origins)), "\0text": text})
    value = _value(text, config, "\0text", key, faults)
    if value is not UNKNOWN:
        return str(value)
    if key not in faults.unsure:
        faults.add(key, f"found {text!r}, which refers to a value that is not known before this include")
    return None


def _of_variables(value: Any) -> Any:
    """A source with references to variables replaced: a sweep has the same ones a thousand times."""
    if isinstance(value, dict):
        return {name: _of_variables(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_of_variables(inner) for inner in value]
    if not (isinstance(value, str) and "${" in value and _OF_VARIABLES.fullmatch(value)):
        return value
    settings = tuple(os.environ.get(name) for name in _VARIABLE.findall(value))
    return _with_variables(value, settings)


@lru_cache(maxsize=1024)
def _with_variables(text: str, settings: tuple[str | None, ...]) -> Any:
    """The text with its variables' values; as it stands where that fails, so that the fault is told."""
    from omegaconf.errors import OmegaConfBaseException

    try:
        value = _config({"text": text})["text"]
    except OmegaConfBaseException:
        return text
    if isinstance(value, str) and ("${" in value or value in ("null", _MISSING)):
        return text
    return value


def _has_reference(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_reference, value.values()))
    if isinstance(value, list):
        return any(map(_has_reference, value))
    return isinstance(value, str) and "${" in value


def _source(value: Any, key: Key, faults: Faults) -> Any:
    """What OmegaConf is given: as the tree, with `???` for what is unknown or cannot be parsed."""
    if isinstance(value, dict):
        return {name: _source(inner, (*key, name), faults) for name, inner in value.items()}
    if isinstance(value, list):
        return [_source(inner, (*key, str(index)), faults) for index, inner in enumerate(value)]
    if value == _MISSING:
        faults.add(key, "the value is still to be given, found ???")
    elif isinstance(value, str) and "${" in value:
        return value if _parses(value, key, faults) else _MISSING
    elif isinstance(value, str | int | float | None):
        return value
    # Not composed, or an include that was not read: its fault is recorded elsewhere.
    return _MISSING


def _config(source: dict[str, Any]) -> Any:
    from omegaconf import OmegaConf

    return OmegaConf.create(source)


def _parses(text: str, key: Key, faults: Faults) -> bool:
    reason = _against(text)
    if reason:
        faults.add(key, f"found {text!r}, which is no valid reference: {reason}", _LITERAL)
    return not reason


@lru_cache(maxsize=1024)
def _against(text: str) -> str:
    """Why a text is no valid reference; empty where it is one."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        OmegaConf.create([text])
    except (OmegaConfBaseException, RecursionError) as error:
        return str(error).splitlines()[0]
    return ""


_LITERAL = r"write \${...} for the text itself"


def _resolve(value: Any, config: Any, key: Key, faults: Faults) -> Any:
    """The source value with references replaced; `config` is the same place in OmegaConf's tree."""
    if isinstance(value, dict):
        return {
            name: _resolve_item(inner, config, name, (*key, name), faults) for name, inner in value.items()
        }
    if isinstance(value, list):
        return [
            _resolve_item(inner, config, index, (*key, str(index)), faults)
            for index, inner in enumerate(value)
        ]
    return UNKNOWN if value == _MISSING else value


def _resolve_item(value: Any, config: Any, name: str | int, key: Key, faults: Faults) -> Any:
    if isinstance(value, dict | list) and config is not None:
        return _resolve(value, config[name], key, faults)
    if isinstance(value, str) and "${" in value:
        return _value(value, config, name, key, faults)
    return _resolve(value, None, key, faults)


def _value(text: str, config: Any, name: str | int, key: Key, faults: Faults) -> Any:
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationToMissingValueError, OmegaConfBaseException

    try:
        value = config[name]
        if OmegaConf.is_config(value):
            value = OmegaConf.to_container(value, resolve=True, throw_on_missing=True)
    except InterpolationToMissingValueError:
        # The value referred to has its own fault.
        return UNKNOWN
    except (OmegaConfBaseException, RecursionError) as error:
        _explain(text, error, key, faults)
        return UNKNOWN
    # A variable is always text: `null` is how it says that there is nothing.
    return None if value == "null" else value


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
        hint = f"${{oc.env:{match[1]}}} for an environment variable; {_LITERAL}"
        faults.add(key, f"found {text!r}, but there is no key {match[1]} in the experiment", hint)
    else:
        faults.add(key, f"found {text!r}, which cannot be resolved: {reason}", _LITERAL)
