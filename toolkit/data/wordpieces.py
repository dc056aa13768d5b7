"""WordPiece tokens of texts, where every distinct word is tokenized once.

BERT's tokenizers cut at blanks before anything else, so that the tokens of a text are those of its words, one
after the other. Most words of a text have been met before: looking them up takes a twentieth of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import numpy as np

from toolkit.data.tokens import Pieces, Places

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Distinct words that are remembered, in some 300 bytes each; then all are forgotten.
_REMEMBERED = 1 << 18
#: One blank for each, so that places in the text stay. Other white space is left to the tokenizer.
_BLANKS = str.maketrans("\t\r\n", "   ")


def is_wordwise(settings: Mapping[str, Any]) -> bool:
    """Whether a tokenizer with these settings (tokenizer.json) treats every word by itself."""
    kinds = [(settings.get(part) or {}).get("type") for part in ("normalizer", "pre_tokenizer", "model")]
    added = [token["content"] for token in settings.get("added_tokens") or ()]
    return kinds == ["BertNormalizer", "BertPreTokenizer", "WordPiece"] and not any(
        character.isspace() for token in added for character in token
    )


class WordPieces:
    """Encodes texts as the tokenizer does, without special tokens around them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._ids: dict[str, tuple[int, ...]] = {}
        #: Start and end of every token in its word, one after the other.
        self._offsets: dict[str, tuple[int, ...]] = {}

    def encode(self, texts: Sequence[str]) -> Iterator[Pieces]:
        """Yield the tokens of each text."""
        split = [text.translate(_BLANKS).split(" ") for text in texts]
        self._learn(set(chain.from_iterable(split)))
        ids = self._ids.__getitem__
        for words in split:
            yield Pieces(list(chain.from_iterable(map(ids, words))), partial(self._spans, words))

    def _learn(self, words: Iterable[str]) -> None:
        if len(self._ids) > _REMEMBERED:
            self._ids.clear()
            self._offsets.clear()
        new = [word for word in words if word not in self._ids]
        for word, encoding in zip(
            new, self._tokenizer.encode_batch(new, add_special_tokens=False), strict=True
        ):
            self._ids[word] = tuple(encoding.ids)
            self._offsets[word] = tuple(chain.from_iterable(encoding.offsets))

    def _spans(self, words: Sequence[str]) -> tuple[Places, Places]:
        offsets = [self._offsets[word] for word in words]
        begins = accumulate((len(word) + 1 for word in words[:-1]), initial=0)
        counts = [len(each) for each in offsets]
        places = np.fromiter(chain.from_iterable(offsets), dtype=np.int64, count=sum(counts))
        places += np.repeat(np.fromiter(begins, dtype=np.int64, count=len(words)), counts)
        return places[0::2], places[1::2]
