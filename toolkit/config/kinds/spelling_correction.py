"""Sections of the tasks that correct spelling errors."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.config.options import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """What the tasks that may write have in common."""

    kind: str = option("")
    """This task."""
    search: str = option("greedy", choices=("greedy", "beam"))
    """How a correction is looked for: the best token at each step, or the best of several sequences."""
    beam_width: int = option(5, minimum=1)
    """Sequences that `beam` keeps side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction(Writing):
    """Those that always write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecNmt(Correction):
    """What a text should say, written anew from its beginning to its end."""

    kind: str = option("sec_nmt")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecWordsNmt(Correction):
    """What each word of a text should be, all words at once."""

    kind: str = option("sec_words_nmt")
