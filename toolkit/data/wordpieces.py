"""WordPiece tokens of texts, where every distinct word is tokenized once.

BERT's tokenizers cut at blanks before anything else, so that the tokens of a text are those of its words, one
after the other. Most words of a text have been met before: looking them up takes a twentieth of the time.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import numpy as np

from toolkit.data.tokens import Pieces, Places

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Distinct words that are remembered, in some 300 bytes each; then all are forgotten.
_REMEMBERED = 1 << 18


def is_wordwise(settings: Mapping[str, Any]) -> bool:
    """Whether a tokenizer with these settings (tokenizer.json) treats every word by itself."""
    kinds = [(settings.get(part) or {}).get("type") for part in ("normalizer", "pre_tokenizer", "model")]
    added = [token["content"] for token in settings.get("added_tokens") or ()]
    return kinds == ["BertNormalizer", "BertPreTokenizer", "WordPiece"] and not any(
        character.isspace() for token in added for character in token
    )


class WordPieces:
    """Encodes texts as the tokenizer does, without special tokens around them.

    without_padding  called with the tokens of every word, to change what must not stand in a text
    """

    def __init__(
        self, tokenizer: Tokenizer, without_padding: Callable[[Sequence[int]], Sequence[int]]
    ) -> None:
        self._tokenizer = tokenizer
        self._without_padding = without_padding
        #: As the bytes of an array of ids: joining them makes no number an object.
        self._ids: dict[str, bytes] = {}
        #: Start and end of every token in its word, one after the other.
        self._offsets: dict[str, tuple[int, ...]] = {}

    def encode(self, texts: Sequence[str]) -> Iterator[Pieces]:
        """Yield the tokens of each text."""
        self._forget()
        split = [_words(text) for text in texts]
        self._learn(set[str]().union(*split).difference(self._ids))
        ids = self._ids.__getitem__
        for words in split:
            numbers = array("I")
            numbers.frombytes(b"".join(map(ids, words)))
            yield Pieces(numbers, partial(self._spans, words))

    def _learn(self, words: Collection[str]) -> None:
        encodings = self._tokenizer.encode_batch(list(words), add_special_tokens=False)
        for word, encoding in zip(words, encodings, strict=True):
            self._ids[word] = array("I", self._without_padding(encoding.ids)).tobytes()
            self._offsets[word] = tuple(chain.from_iterable(encoding.offsets))

    def _forget(self) -> None:
        if len(self._ids) > _REMEMBERED:
            self._ids.clear()
            self._offsets.clear()

    def _spans(self, words: Sequence[str]) -> tuple[Places, Places]:
        offsets = [self._offsets[word] for word in words]
        begins = accumulate((len(word) + 1 for word in words[:-1]), initial=0)
        counts = [len(each) for each in offsets]
        places = np.fromiter(chain.from_iterable(offsets), dtype=np.int64, count=sum(counts))
        places += np.repeat(np.fromiter(begins, dtype=np.int64, count=len(words)), counts)
        return places[0::2], places[1::2]


def _words(text: str) -> list[str]:
    """What stands between common blanks, empty words included: places in the text can be told from them.

    Other white space stays within a word and is left to the tokenizer.
    """
    return text.replace("\n", " ").replace("\r", " ").replace("\t", " ").split(" ")
