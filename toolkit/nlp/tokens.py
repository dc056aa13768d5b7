"""Tokens and their numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError
from toolkit.files import read_json, write_json

#: Fills a batch up to its longest sample.
PAD_ID = 0
#: The id of every token that the vocabulary lacks, and of a text without tokens.
UNK_ID = 1
#: How the reserved ids are shown to people. The same string in a text is another token.
RESERVED = ("<pad>", "<unk>")

Tokenizer = Callable[[str], list[str]]
Places = npt.NDArray[np.int64]

#: The type of a token's provisional number, before the vocabulary is final.
NUMBER = np.dtype(np.uint32)

# Letters and digits are \w without the underscore.
_PATTERNS = {"words": re.compile(r"[^\W_]+|[^\w\s]|_"), "whitespace": re.compile(r"\S+")}


def tokenizer(kind: str, *, lowercase: bool) -> Tokenizer:
    """The function that cuts a text into tokens.

    kind  words: runs of letters and digits of any script, and each other character that is not a space;
          whitespace: the parts between blanks
    """
    cuts: dict[str, Tokenizer] = {"words": _PATTERNS["words"].findall, "whitespace": str.split}
    cut = cuts[kind]
    return (lambda text: cut(text.lower())) if lowercase else cut


def token_spans(text: str, kind: str, *, lowercase: bool) -> tuple[Places, Places]:
    """Return where each token that `tokenizer` makes of a text starts and ends: [n] and [n] code points."""
    lower = text.lower() if lowercase else text
    found = [match.span() for match in _PATTERNS[kind].finditer(lower)]
    starts, ends = np.array(found, dtype=np.int64).reshape(-1, 2).T
    if len(lower) == len(text):
        return starts, ends
    # A few letters become two in lower case (İ): this maps each lower-case letter to its original.
    origin = np.repeat(np.arange(len(text)), [len(letter.lower()) for letter in text])
    return origin[starts], origin[ends - 1] + 1


class Pieces(NamedTuple):
    """The tokens of some texts.

    numbers  tokens of each text, as bytes of NUMBER, which are joined and cut without Python integers
    spans    called with indices of texts: yields the [n] starts and [n] ends of the tokens of each
    """

    numbers: Sequence[bytes]
    spans: Callable[[Sequence[int]], Iterable[tuple[Places, Places]]]


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The tokens that have an id, and how often each occurs in the training split.

    `tokens[0]` has id 2: 0 is padding, 1 the unknown token.
    """

    tokens: tuple[str, ...]
    counts: tuple[int, ...]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.tokens, start=len(RESERVED))}

    def __len__(self) -> int:
        """Number of ids, the two reserved ones included."""
        return len(self.tokens) + len(RESERVED)

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int], *, min_count: int = 1, max_size: int | None = None
    ) -> Vocabulary:
        """Keep the tokens counted at least min_count times: most frequent first, ties by code point.

        max_size  most ids, the reserved ones included
        """
        kept = sorted((-count, token) for token, count in counts.items() if count >= max(min_count, 1))
        if max_size is not None:
            kept = kept[: max(max_size - len(RESERVED), 0)]
        return cls(tokens=tuple(token for _, token in kept), counts=tuple(-count for count, _ in kept))

    def encode(self, tokens: Iterable[str]) -> npt.NDArray[np.int64]:
        """Ids of tokens, [n]; a text without tokens becomes one unknown token."""
        ids = [self._ids.get(token, UNK_ID) for token in tokens]
        return np.array(ids or [UNK_ID], dtype=np.int64)

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Tokens of ids, the reserved ones as <pad> and <unk>."""
        names = RESERVED + self.tokens
        return [names[number] for number in ids]

    def save(self, path: Path) -> None:
        """Write the vocabulary as JSON. Raises OSError."""
        write_json(path, {"tokens": self.tokens, "counts": self.counts})

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read what `save` wrote. Raises DataError."""
        try:
            stored = read_json(path)
            return cls(tokens=tuple(stored["tokens"]), counts=tuple(stored["counts"]))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataError(f"{path}: no vocabulary can be read there ({error})") from error
