"""`key=a,b`: every combination of values, as experiments that have all been checked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.config import load, run_id, to_plain
from toolkit.config.schema import Experiment
from toolkit.errors import ConfigError, Fault, UserError

#: Above any cluster's arrays; a slip of a comma should not be composed for an hour.
_MOST = 100_000
_OPENING, _CLOSING = "[{(", "]})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One experiment of a sweep.

    values   what the keys with several values are set to here, as written
    """

    values: Mapping[str, str]
    experiment: Experiment

    @property
    def run_id(self) -> str:
        return run_id(self.experiment)

    def __str__(self) -> str:
        return tell(self.values)


def tell(values: Mapping[str, str]) -> str:
    """What a combination is called: its keys and values."""
    return " ".join(f"{key}={value}" for key, value in values.items())


def combine(config: Path, overrides: Sequence[str]) -> list[Combination]:
    """Compose and check every combination of the values that overrides list; the last key turns fastest.

    Raises ConfigError with the faults of all, each with the combinations that have it, and UserError for
    a list that cannot be meant, or resources that differ.
    """
    every = {override.partition("=")[0]: split_values(override) for override in overrides}
    if len(every) < len(overrides):
        twice = next(key for key in every if sum(key == each.partition("=")[0] for each in overrides) > 1)
        raise UserError(f"{twice} is given twice; list all of its values at once: {twice}=a,b")
    listed = {key: values for key, values in every.items() if len(values) > 1}
    count = math.prod(map(len, listed.values()))
    if count > _MOST:
        raise UserError(f"these lists make {count:,} combinations, more than {_MOST:,}: list fewer values")
    found = list(_load_all(config, every, listed))
    _check_resources(found)
    return found


def split_values(override: str) -> list[str]:
    """The values of `key=a,b`: cut at commas that lie in no brackets and no quotes.

    One value where there is none to cut at; no `=`, no value. Raises UserError for an empty one of several.
    """
    key, equals, text = override.partition("=")
    values = [part.strip() for part in _cut(text)] if equals else []
    if len(values) > 1 and not all(values):
        raise UserError(
            f"{override}: a value between commas is empty; null stands for nothing ({key}=null,a)"
        )
    return values


def _cut(text: str) -> Iterator[str]:
    depth, start, place, quote, closed = 0, 0, 0, "", -1
    while place < len(text):
        letter = text[place]
        if quote:
            if letter == "\\" and quote == '"':
                place += 1
            elif letter == quote:
                quote, closed = "", place
        # Twice within quotes it stands for itself: the end of one quoted text and the beginning of the next.
        elif letter in "\"'" and (closed == place - 1 or _may_begin(text[start:place], depth)):
            quote = letter
        elif letter in _OPENING:
            depth += 1
        elif letter in _CLOSING:
            depth = max(0, depth - 1)
        elif letter == "," and depth == 0:
            yield text[start:place]
            start = place + 1
        place += 1
    yield text[start:]


def _may_begin(before: str, depth: int) -> bool:
    """Whether a quotation mark after this begins a quoted text, and is no letter of a plain one.

    As in YAML: at the beginning of a value, or of a part of a list or mapping.
    """
    before = before.rstrip()
    return not before or (depth > 0 and before[-1] in "[{,:(")


def _load_all(
    config: Path, every: Mapping[str, Sequence[str]], listed: Mapping[str, Sequence[str]]
) -> Iterator[Combination]:
    faults: dict[Fault, list[str]] = {}
    count = 0
    for chosen in itertools.product(*listed.values()):
        count += 1
        values = dict(zip(listed, chosen, strict=True))
        try:
            experiment = load(config, _overrides(every, values))
        except ConfigError as error:
            for fault in error.faults:
                faults.setdefault(fault, []).append(tell(values))
            continue
        yield Combination(values=values, experiment=experiment)
    if faults:
        raise ConfigError([_named(fault, names, count) for fault, names in faults.items()])


def _overrides(every: Mapping[str, Sequence[str]], values: Mapping[str, str]) -> list[str]:
    """What `stk submit` would be given for one combination."""
    return [f"{key}={values.get(key, (known or [''])[0])}" if known else key for key, known in every.items()]


def _named(fault: Fault, names: Sequence[str], count: int) -> Fault:
    """A fault that also says which combinations have it."""
    if len(names) == count:
        return fault
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    where = f"in the run with {names[0]}{more}"
    hint = f"{fault.hint}; {where}" if fault.hint else where
    return Fault(key=fault.key, problem=fault.problem, origin=fault.origin, hint=hint)


def _check_resources(found: Sequence[Combination]) -> None:
    """Raise UserError unless all ask for the same: a job array gives each of its tasks the same."""
    first = found[0]
    for other in found[1:]:
        if other.experiment.resources == first.experiment.resources:
            continue
        one, two = (to_plain(each.experiment.resources) for each in (first, other))
        key = next(key for key in one if one[key] != two[key])
        raise UserError(
            f"resources.{key} is {one[key]!r} with {first} and {two[key]!r} with {other}, but all "
            "tasks of a job array get the same. Sweep keys of what is computed; resources take a sweep each"
        )
