"""The section `sweep` of an experiment file, checked like its other sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.config.checking.descriptions import found
from toolkit.config.composition.compose import file_faults, gather_sweep
from toolkit.config.faults import Faults
from toolkit.config.fields import SWEEP
from toolkit.config.origins import UNKNOWN, Key
from toolkit.config.schema import NAME_PATTERN
from toolkit.errors import UserError
from toolkit.sweeps.spaces import RANGES, Space, Values, range_of, written
from toolkit.sweeps.sweep import METHODS, Sweep
from toolkit.system.output.nearest import suggest


def load_sweep(path: Path, overrides: Sequence[str] = ()) -> Sweep | None:
    """The sweep that an experiment file describes; None if it has no such section.

    overrides   of keys of the section: `sweep.samples=20`
    Raises ConfigError with all faults of the section.
    """
    faults = file_faults(path)
    section = gather_sweep(path, overrides, faults)
    sweep = None if section is None else _Reader(section, faults).sweep()
    faults.raise_any()
    return sweep


def of_section(override: str) -> bool:
    """Whether an override sets a key of the section `sweep`."""
    return override.partition("=")[0].split(".")[0].strip() == SWEEP


class _Reader:
    """Reads a section; an invalid value becomes None, so that reading continues."""

    def __init__(self, section: Any, faults: Faults) -> None:
        self._faults = faults
        self._section = section if isinstance(section, dict) else {}
        if not isinstance(section, dict) and section is not UNKNOWN:
            faults.add((SWEEP,), f"{found(section)}, expected a section with `parameters`")

    def sweep(self) -> Sweep:
        for name in self._section:
            if name not in KEYS:
                self._faults.add((SWEEP, name), "there is no such key", suggest(name, KEYS))
        values = {name: self._section[name] for name in KEYS if self._section.get(name) is not None}
        given = {name: KEYS[name](self, name, value) for name, value in values.items()}
        parameters: dict[str, Space] = {}
        fixed: dict[str, str] = {}
        for key, space in given.pop("parameters", None) or ():
            # A later entry counts, as on the command line: a key may be written with dots and as a section.
            parameters.pop(key, None)
            fixed.pop(key, None)
            if isinstance(space, str):
                fixed[key] = space
            else:
                parameters[key] = space
        known = {_FIELDS.get(name, name): value for name, value in given.items() if value is not None}
        return Sweep(**{"method": _method(given, parameters), **known}, parameters=parameters, fixed=fixed)

    def parameters(self, name: str, value: Any) -> Any:
        if not isinstance(value, dict):
            return self._wrong((SWEEP, name), value, "a section of `key: [value, …]`") or []
        return list(self._spaces(value, (SWEEP, name), ""))

    def _spaces(self, section: Mapping[str, Any], at: Key, prefix: str) -> Iterator[tuple[str, Space | str]]:
        """Key and space of each parameter; nested sections become keys with dots."""
        for name, value in section.items():
            key, place = prefix + name, (*at, name)
            if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in RANGES:
                ((word, limits),) = value.items()
                if (space := self._range(word, limits, place)) is not None:
                    yield key, space
            elif isinstance(value, dict) and value:
                yield from self._spaces(value, place, f"{key}.")
            elif isinstance(value, list) and value:
                yield key, Values(tuple(map(written, value)))
            elif isinstance(value, dict | list):
                self._wrong(place, value, "at least one value")
            elif value is not UNKNOWN:
                yield key, written(value)

    def _range(self, word: str, limits: Any, at: Key) -> Space | None:
        if not isinstance(limits, list):
            self._wrong((*at, word), limits, "a list of two numbers" if word != "choice" else "a list")
            return None
        try:
            return range_of(word, limits)
        except UserError as error:
            self._faults.add((*at, word), str(error))
            return None

    def runs(self, name: str, value: Any) -> Any:
        if not isinstance(value, list) or not value:
            return self._wrong((SWEEP, name), value, "a list of `{key: value, …}`")
        points = []
        for index, run in enumerate(value):
            if isinstance(run, dict) and run:
                points.append(dict(_plain(run, "")))
            else:
                self._wrong((SWEEP, name, str(index)), run, "{key: value, …}")
        return tuple(points)

    def groups(self, name: str, value: Any) -> Any:
        groups = [value] if _is_texts(value) else value
        if not isinstance(groups, list) or not all(_is_texts(group) for group in groups):
            return self._wrong((SWEEP, name), value, "a list of keys, or several lists")
        return tuple(map(tuple, groups))

    def seeds(self, name: str, value: Any) -> Any:
        if not isinstance(value, list) or not value or not all(_is_whole(each, 0) for each in value):
            return self._wrong((SWEEP, name), value, "a list of whole numbers")
        return tuple(map(str, value))

    def whole(self, name: str, value: Any) -> Any:
        least = 0 if name == "seed" else 1
        if not _is_whole(value, least):
            return self._wrong((SWEEP, name), value, f"a whole number from {least}")
        return int(value)

    def text(self, name: str, value: Any) -> Any:
        if not isinstance(value, str) or not value:
            return self._wrong((SWEEP, name), value, "text")
        return value

    def name(self, name: str, value: Any) -> Any:
        text = self.text(name, value)
        if text is not None and not re.fullmatch(NAME_PATTERN, text):
            return self._wrong((SWEEP, name), text, "letters, digits, dot, dash, underscore")
        return text

    def choice(self, name: str, value: Any) -> Any:
        if value not in CHOICES[name]:
            return self._wrong((SWEEP, name), value, f"one of {', '.join(CHOICES[name])}")
        return str(value)

    def _wrong(self, at: Key, value: Any, expected: str) -> Any:
        """Record a fault; return None in place of the value."""
        if value is not UNKNOWN:
            self._faults.add(at, f"{found(value)}, expected {expected}")


#: The keys of the section, and their readers, which get the key and its value.
KEYS: Mapping[str, Callable[[_Reader, str, Any], Any]] = {
    "name": _Reader.name,
    "method": _Reader.choice,
    "parameters": _Reader.parameters,
    "runs": _Reader.runs,
    "zip": _Reader.groups,
    "seeds": _Reader.seeds,
    "samples": _Reader.whole,
    "seed": _Reader.whole,
    "sampler": _Reader.text,
    "max_parallel": _Reader.whole,
    "metric": _Reader.text,
    "goal": _Reader.choice,
}
CHOICES = {"method": METHODS, "goal": ("max", "min")}
_FIELDS = {"zip": "zipped"}


def _plain(section: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """Keys and values of a listed run; nested sections are keys with dots, unless they name a `kind`."""
    for name, value in section.items():
        # Keys of another kind do not fit: such a section is replaced.
        if isinstance(value, dict) and value and "kind" not in value:
            yield from _plain(value, f"{prefix}{name}.")
        else:
            yield prefix + name, written(value)


def _method(given: Mapping[str, Any], parameters: Mapping[str, Space]) -> str:
    """The method if none is given."""
    if "samples" in given:
        return "optuna" if "sampler" in given else "random"
    return "list" if "runs" in given and not parameters else "grid"


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
