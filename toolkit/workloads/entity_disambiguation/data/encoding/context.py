"""Encode a mention with a window of the text around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from toolkit.workloads.entity_disambiguation.data.encoding.tokenizer import (
    ENT_END,
    ENT_START,
    MarkedTokenizer,
)
from toolkit.workloads.entity_disambiguation.data.entities.spans import Span

#: On each side, this many characters per token of a sample are tokenized. More are not needed.
_CHARACTERS_PER_TOKEN = 20


class Context(NamedTuple):
    """A sample: its tokens, with special tokens and markers; the mention is tokens[first:last]."""

    tokens: npt.NDArray[np.uint32]
    first: int
    last: int


def cut_window(left: int, mention: int, right: int, window: int, room: int) -> tuple[int, int, int]:
    """Return how many tokens to keep: the last ones of the left part, the first ones of the others.

    The mention takes priority, then `window` tokens around it, all within `room`. Each side gets half of the
    window, and the tokens that the other side does not need. (Bootleg cuts a window that is too long at its
    end, and may cut the mention; here the window shrinks.)
    """
    mention = min(mention, room)
    window = min(window, room - mention)
    before = min(left, max(window // 2, window - right))
    return before, mention, min(right, window - before)


def contexts(
    texts: Sequence[str], spans: Sequence[Span], tokenizer: MarkedTokenizer, *, window: int, max_tokens: int
) -> list[Context]:
    """The samples of mentions: one for each text and the characters of its mention."""
    reach = _CHARACTERS_PER_TOKEN * max_tokens
    parts: list[str] = []
    for text, (start, end) in zip(texts, spans, strict=True):
        parts += [text[max(0, start - reach) : start], text[start:end], text[end : end + reach]]
    pieces = tokenizer.encode(parts)
    room = max_tokens - tokenizer.specials - 2
    found = []
    for place in range(0, len(pieces), 3):
        left, mention, right = pieces[place : place + 3]
        kept = cut_window(len(left), len(mention), len(right), window, room)
        before = [*tokenizer.before, *left[len(left) - kept[0] :], tokenizer.markers[ENT_START]]
        behind = [tokenizer.markers[ENT_END], *right[: kept[2]], *tokenizer.after]
        tokens = np.concatenate([before, mention[: kept[1]], behind]).astype(np.uint32)
        found.append(Context(tokens, len(before), len(before) + kept[1]))
    return found
