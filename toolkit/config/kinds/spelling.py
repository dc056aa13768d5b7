"""Sections of the spelling tasks: texts, the noise that makes samples of them, the tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolkit.config.kinds.spelling_correction import Writing
from toolkit.config.options import option


def noise_kinds() -> Mapping[str, type]:
    """The kinds of noise, by name."""
    return NOISES


@dataclass(frozen=True, slots=True, kw_only=True)
class NoNoise:
    """Leaves texts as they are."""

    kind: str = option("none")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtificialNoise:
    """Edits letters of words: inserts, deletes, swaps, replaces."""

    kind: str = option("artificial")
    rate: float = option(0.2, minimum=0, maximum=1)
    """Share of all words that are misspelt."""
    more_edits: float = option(0.2, minimum=0, maximum=0.9)
    """Probability of each further edit of a word."""
    at_least: int = option(0, minimum=0)
    """Errors of every text, as far as it has words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealisticNoise:
    """Puts listed misspellings in the place of words."""

    kind: str = option("realistic")
    misspellings: str = option(path=True)
    """JSON file: word -> its misspellings (`stk spelling misspellings`)."""
    rate: float = option(0.2, minimum=0, maximum=1)
    """Share of all words that are misspelt, as far as there are words with misspellings."""
    at_least: int = option(0, minimum=0)
    """Errors of every text, as far as it has words with misspellings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedNoise:
    """Some of both: listed misspellings, and edits of letters."""

    kind: str = option("mixed")
    misspellings: str = option(path=True)
    """JSON file: word -> its misspellings (`stk spelling misspellings`)."""
    rate: float = option(0.2, minimum=0, maximum=1)
    """Share of all words that are misspelt; those that cannot be, such as numbers, do not lower it."""
    artificial: float = option(0.2, minimum=0, maximum=1)
    """Share of the errors that are edits of letters."""
    more_edits: float = option(0.2, minimum=0, maximum=0.9)
    """Probability of each further edit of a word."""
    at_least: int = option(0, minimum=0)
    """Errors of every text, as far as it has words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhitespaceNoise:
    """Removes and inserts spaces. Noise of words comes before it."""

    kind: str = option("whitespace")
    none: float = option(0.1, minimum=0, maximum=1)
    """Share of texts that lose all spaces."""
    every: float = option(0.1, minimum=0, maximum=1)
    """Share of texts that get a space between any two characters."""
    insert: float = option(0.1, minimum=0, maximum=1)
    """Probability of a space between two characters of the other texts."""
    delete: float = option(0.5, minimum=0, maximum=1)
    """Probability that a space of those is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubstringNoise:
    """Keeps successive words of a longer text, chosen at random."""

    kind: str = option("substring")
    max_characters: int = option(512, minimum=1)
    """Characters of the text that is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveNoise:
    """Keeps the target for tasks that ask for the clean text, too; `replace` comes next."""

    kind: str = option("save")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceNoise:
    """Makes the noisy text the target: only what comes next is to be undone."""

    kind: str = option("replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainedNoise:
    """One noise after the other."""

    kind: str = option("chained")
    steps: tuple[Any, ...] = option(kinds=noise_kinds)
    """Noises, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchNoise:
    """One of several noises, chosen for every text."""

    kind: str = option("switch")
    choices: tuple[Any, ...] = option(kinds=noise_kinds)
    """Noises to choose from."""
    weights: tuple[float, ...] | None = option(None, minimum=0)
    """How often each is chosen, divided by their sum; null: all alike."""


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
_OF_WORDS = (ArtificialNoise, RealisticNoise, MixedNoise)
_Key: TypeAlias = "tuple[str, ...]"
#: Key, problem, hint.
_Fault: TypeAlias = "tuple[_Key, str, str]"


def noise_faults(noise: Any, key: _Key) -> Iterator[_Fault]:
    """Yield key, problem and hint of what does not fit within a noise, and between its parts."""
    yield from _own_faults(noise, key)
    yield from _order_faults(noise, key, set())


def _own_faults(noise: Any, key: _Key) -> Iterator[_Fault]:
    if isinstance(noise, WhitespaceNoise) and noise.none + noise.every > 1:
        yield (*key, "every"), f"found {noise.every:g}, which with none ({noise.none:g}) is more than 1", ""
    if isinstance(noise, ChainedNoise) and not noise.steps:
        yield (*key, "steps"), "found none, expected at least one noise", "kind: none changes nothing"
    if isinstance(noise, SwitchNoise):
        yield from _switch_faults(noise, key)
    for inner_key, inner in _parts(noise, key):
        yield from _own_faults(inner, inner_key)


def _switch_faults(noise: SwitchNoise, key: _Key) -> Iterator[_Fault]:
    if not noise.choices:
        yield (*key, "choices"), "found none, expected at least one noise", "kind: none changes nothing"
    elif noise.weights is not None and len(noise.weights) != len(noise.choices):
        problem = f"found {len(noise.weights)}, expected one for each of the {len(noise.choices)} choices"
        yield (*key, "weights"), problem, ""
    elif noise.weights is not None and not sum(noise.weights):
        yield (*key, "weights"), "found zeros alone, so that nothing can be chosen", ""


def _order_faults(noise: Any, key: _Key, before: set[type]) -> Iterator[_Fault]:
    """What must not come after white space was changed; `before` gathers the kinds that came before."""
    if WhitespaceNoise in before and isinstance(noise, (*_OF_WORDS, SaveNoise, ReplaceNoise)):
        problem = f"found {noise.kind} after whitespace, when words are no longer those of the target"
        yield (*key, "kind"), problem, f"put {noise.kind} before whitespace"
    after = {*before, type(noise)}
    for inner_key, inner in _parts(noise, key):
        branch = set(before) if isinstance(noise, SwitchNoise) else before
        yield from _order_faults(inner, inner_key, branch)
        after |= branch
    before |= after


def _parts(noise: Any, key: _Key) -> Iterator[tuple[_Key, Any]]:
    name = {ChainedNoise: "steps", SwitchNoise: "choices"}.get(type(noise), "")
    for place, inner in enumerate(getattr(noise, name, ())):
        yield (*key, name, str(place)), inner


@dataclass(frozen=True, slots=True, kw_only=True)
class SpellingTexts:
    """Texts, and the noise that puts errors into them.

    A file holds a clean text a line; or, as .jsonl, objects with `sequence` and maybe `target_sequence`; a
    folder holds corrupt.txt and correct.txt, as a benchmark does. Only clean texts get noise.
    """

    datasets: tuple[str, ...] | None = option(None, path=True)
    """Files or folders that training and validation are from; relative to where the command is given."""
    dataset_limits: tuple[int, ...] | None = option(None, minimum=1)
    """Most texts of each data set that are trained on, spread over all of it; null: all."""
    val_splits: tuple[float, ...] | None = option(None, above=0)
    """Texts of each data set for validation: from 1 a number, below it a share; null: a tenth, or none with
    `validation`."""
    split_seed: int = option(0, minimum=0)
    """Fixes which texts are for validation; `seed` has no part in it."""
    path: str | None = option(None, path=True)
    """A single data set, in place of `datasets`."""
    validation: tuple[str, ...] | None = option(None, path=True)
    """Files or folders to validate on, in place of a part of the data sets."""
    test: tuple[str, ...] | None = option(None, path=True)
    """Files or folders to test on."""
    noise: Any = option(factory=NoNoise, kinds=noise_kinds)  # noqa: RUF009 - makes a field
    """What makes samples of clean texts."""
    noise_seed: int = option(0, minimum=0)
    """Fixes the errors that it makes; `seed` has no part in it."""
    tokenizer_path: str = option(path=True)
    """JSON file of the tokenizer that reads (`stk spelling tokenizer`)."""
    output_tokenizer_path: str | None = option(None, path=True)
    """JSON file of the tokenizer that writes, for correction."""
    dictionary: str | None = option(None, path=True)
    """File of words and frequencies (`stk spelling dictionary`): what features of words say is known, and
    which errors are real words; null: nothing is known."""
    max_length: int = option(512, minimum=8, maximum=65535)
    """Tokens of a sample, special ones included; longer ones are left out, and counted."""
    workers: int | None = option(None, minimum=1, identity=False)
    """Processes that prepare; null: as many as there are CPUs for this one. They change nothing but the
    time."""
    prepared_dir: str = option("data/prepared", path=True, identity=False)
    """Where prepared sets are kept; shared by all runs."""


#: Keys of a data section that name what a run was trained on, and say how much of it.
OWN_TEXTS = ("datasets", "dataset_limits", "val_splits", "validation", "test")


def detection_rates(data: SpellingTexts) -> list[str]:
    """Metrics of the detection of wrong words that a dictionary adds."""
    return ["real_word_rate", "non_word_rate"] if data.dictionary else []


@dataclass(frozen=True, slots=True, kw_only=True)
class SedWords:
    """Which words of a text are misspelt."""

    kind: str = option("sed_words")


@dataclass(frozen=True, slots=True, kw_only=True)
class SedSequence:
    """Whether a text has a misspelt word."""

    kind: str = option("sed_sequence")


def plus_metrics(data: SpellingTexts) -> list[str]:
    """Metrics of `tokenization_repair_plus` that a dictionary and a decoder add."""
    return detection_rates(data) + (["token_accuracy"] if data.output_tokenizer_path else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class WhitespaceRepair:
    """Where a text lacks a space, and which of its spaces are none."""

    kind: str = option("tokenization_repair")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhitespaceRepairPlus(Writing):
    """Which words of a text are misspelt whose white space may be wrong, and what they should be."""

    kind: str = option("tokenization_repair_plus")
