"""The `task` sections, and the metrics that depend on the data."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.config.fields import option
from toolkit.workload import Metric, shares
from toolkit.workloads.spelling.config.data import SpellingTexts

#: Shares of real-word errors and of non-word errors that are found.
DETECTION_RATES = shares("real_word_rate", "non_word_rate")
WRITTEN_TOKENS = shares("token_accuracy")


def detection_rates(data: SpellingTexts) -> tuple[Metric, ...]:
    """With `data.dictionary`: `real_word_rate` and `non_word_rate`."""
    return DETECTION_RATES if data.dictionary else ()


def plus_metrics(data: SpellingTexts) -> tuple[Metric, ...]:
    """With `data.dictionary` those of `sed_words`; with `data.output_tokenizer_path` `token_accuracy`."""
    return detection_rates(data) + (WRITTEN_TOKENS if data.output_tokenizer_path else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class SedWords:
    """Which words of a text are misspelt."""

    kind: str = option("sed_words")


@dataclass(frozen=True, slots=True, kw_only=True)
class SedSequence:
    """Whether a text has a misspelt word."""

    kind: str = option("sed_sequence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """Common keys of the tasks that may write texts."""

    kind: str = option("")
    search: str = option("greedy", choices=("greedy", "beam"))
    """greedy: the best token at each step; beam: beam search."""
    beam_width: int = option(5, minimum=1)
    """Number of sequences of the beam."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecNmt(Writing):
    """The corrected text, written from beginning to end."""

    kind: str = option("sec_nmt")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecWordsNmt(Writing):
    """The correction of each word of a text, all words at once."""

    kind: str = option("sec_words_nmt")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhitespaceRepair:
    """Finds missing and wrong spaces in a text."""

    kind: str = option("tokenization_repair")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhitespaceRepairPlus(Writing):
    """Which words are misspelt in texts with wrong white space, and their corrections."""

    kind: str = option("tokenization_repair_plus")
