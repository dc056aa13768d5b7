"""Rules over several keys of an experiment: how they are registered and applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from toolkit.config.schema import Experiment
from toolkit.config.tree import Faults, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A rule that does not hold: the key to blame, what was found and is allowed, what to do."""

    key: Key
    problem: str
    hint: str = ""


Rule = Callable[[Experiment], Iterator[Broken]]
_RULES: list[tuple[tuple[Key, ...], Rule]] = []


def rule(*reads: str) -> Callable[[Rule], Rule]:
    """Register a rule; it is left out where one of the keys that it reads has a fault already."""

    def register(broken: Rule) -> Rule:
        _RULES.append((tuple(tuple(key.split(".")) for key in reads), broken))
        return broken

    return register


def check_rules(experiment: Experiment, faults: Faults) -> None:
    """Record every rule that does not hold."""
    # First all that can be applied, or the first one's fault would hide the others.
    applicable = [each for reads, each in _RULES if not faults.doubts(reads)]
    for each in applicable:
        for broken in each(experiment):
            faults.add(broken.key, broken.problem, broken.hint)
