"""The `noise` sections, which describe how errors are put into clean texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from toolkit.config.fields import option
from toolkit.workload import Violation


def noise_kinds() -> Mapping[str, type]:
    """The kinds of noise, by name."""
    return NOISES


@dataclass(frozen=True, slots=True, kw_only=True)
class NoNoise:
    """Leaves texts as they are."""

    kind: str = option("none")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordNoise:
    """Common keys of the kinds that misspell words."""

    kind: str = option("")
    rate: float = option(0.2, minimum=0, maximum=1)
    """Misspelt words as a share of all words, numbers included."""
    at_least: int = option(0, minimum=0)
    """Minimum errors in a text that has enough words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtificialNoise(WordNoise):
    """Edits letters of words: inserts, deletes, swaps, replaces."""

    kind: str = option("artificial")
    more_edits: float = option(0.2, minimum=0, maximum=0.9)
    """Probability of each further edit of a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealisticNoise(WordNoise):
    """Replaces words by listed misspellings."""

    kind: str = option("realistic")
    misspellings: str = option(path=True)
    """JSON file: word -> its misspellings (`stk spelling misspellings`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedNoise(RealisticNoise):
    """Mixes listed misspellings and edits of letters."""

    kind: str = option("mixed")
    artificial: float = option(0.2, minimum=0, maximum=1)
    """Share of the errors that are edits of letters."""
    more_edits: float = option(0.2, minimum=0, maximum=0.9)
    """Probability of each further edit of a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhitespaceNoise:
    """Removes and inserts spaces. Put noise that misspells words before it."""

    kind: str = option("whitespace")
    none: float = option(0.1, minimum=0, maximum=1)
    """Share of texts that lose all spaces."""
    every: float = option(0.1, minimum=0, maximum=1)
    """Share of texts with a space between any two characters."""
    insert: float = option(0.1, minimum=0, maximum=1)
    """In the other texts: probability of a new space between two characters."""
    delete: float = option(0.5, minimum=0, maximum=1)
    """In the other texts: probability that a space is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubstringNoise:
    """Cuts longer texts: keeps consecutive words, chosen at random."""

    kind: str = option("substring")
    max_characters: int = option(512, minimum=1)
    """Longest text in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveNoise:
    """Keeps the target for tasks that also need the clean text; put `replace` next."""

    kind: str = option("save")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceNoise:
    """Makes the noisy text the target, so that only later noise is to be undone."""

    kind: str = option("replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainedNoise:
    """Applies several noises in order."""

    kind: str = option("chained")
    steps: tuple[Any, ...] = option(kinds=noise_kinds)
    """Noises, in order."""
    PARTS: ClassVar[str] = "steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchNoise:
    """Applies one of several noises, chosen at random for each text."""

    kind: str = option("switch")
    choices: tuple[Any, ...] = option(kinds=noise_kinds)
    """Noises to choose from."""
    weights: tuple[float, ...] | None = option(None, minimum=0)
    """Relative frequencies of the choices; null: all alike."""
    PARTS: ClassVar[str] = "choices"


NOISES: Mapping[str, type] = {
    "none": NoNoise,
    "artificial": ArtificialNoise,
    "realistic": RealisticNoise,
    "mixed": MixedNoise,
    "whitespace": WhitespaceNoise,
    "substring": SubstringNoise,
    "save": SaveNoise,
    "replace": ReplaceNoise,
    "chained": ChainedNoise,
    "switch": SwitchNoise,
}
_Key: TypeAlias = "tuple[str, ...]"


def noises_within(noise: Any, key: _Key = ()) -> Iterator[tuple[_Key, Any]]:
    """Yield pairs of a key and a noise: the noise itself and all noises within it."""
    yield key, noise
    for inner_key, inner in _parts(noise, key):
        yield from noises_within(inner, inner_key)


def noise_faults(noise: Any, key: _Key) -> Iterator[Violation]:
    """Yield the problems of a noise, its parts and their order; `key` is the key of the noise."""
    for inner_key, inner in noises_within(noise, key):
        yield from _own_faults(inner, inner_key)
    yield from _order_faults(noise, key, set())


def _own_faults(noise: Any, key: _Key) -> Iterator[Violation]:
    if isinstance(noise, WhitespaceNoise) and noise.none + noise.every > 1:
        problem = f"found {noise.every:g}, which with none ({noise.none:g}) is more than 1"
        yield Violation(key=(*key, "every"), problem=problem)
    if isinstance(noise, ChainedNoise | SwitchNoise) and not getattr(noise, noise.PARTS):
        problem = "found none, expected at least one noise"
        yield Violation(key=(*key, noise.PARTS), problem=problem, hint="kind: none changes nothing")
    elif isinstance(noise, SwitchNoise) and noise.weights is not None:
        weights, choices, of_weights = noise.weights, len(noise.choices), (*key, "weights")
        if len(weights) != choices:
            problem = f"found {len(weights)}, expected one for each of the {choices} choices"
            yield Violation(key=of_weights, problem=problem)
        elif not sum(weights):
            yield Violation(key=of_weights, problem="found only zeros, so nothing can be chosen")


def _order_faults(noise: Any, key: _Key, before: set[type]) -> Iterator[Violation]:
    """Yield noises that must not follow a change of white space; `before` collects the earlier kinds."""
    if WhitespaceNoise in before and isinstance(noise, WordNoise | SaveNoise | ReplaceNoise):
        problem = f"found {noise.kind} after whitespace, which changes the words"
        yield Violation(key=(*key, "kind"), problem=problem, hint=f"put {noise.kind} before whitespace")
    after = {*before, type(noise)}
    for inner_key, inner in _parts(noise, key):
        branch = set(before) if isinstance(noise, SwitchNoise) else before
        yield from _order_faults(inner, inner_key, branch)
        after |= branch
    before |= after


def _parts(noise: Any, key: _Key) -> Iterator[tuple[_Key, Any]]:
    """Yield pairs of a key and a noise, for the noises that a noise consists of."""
    if isinstance(noise, ChainedNoise | SwitchNoise):
        for place, inner in enumerate(getattr(noise, noise.PARTS)):
            yield (*key, noise.PARTS, str(place)), inner
