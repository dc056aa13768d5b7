"""WordPiece tokens of texts; every distinct word is tokenized only once.

BERT's tokenizers first cut at blanks, so that the tokens of a text are the tokens of its words, in order.
Most words of a text have occurred before: looking them up takes a twentieth of the time.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from toolkit.nlp.tokens import Pieces, Places

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Most distinct words that are remembered, in about 300 bytes each; then all are forgotten.
_REMEMBERED = 1 << 18
#: New words that are encoded together.
_WORDS_OF_A_TEXT = 256
#: Bytes of a token's number, and of its start and end.
_NUMBER, _SPAN = 4, 16


def is_wordwise(settings: Mapping[str, Any]) -> bool:
    """Whether a tokenizer with these settings (tokenizer.json) treats every word separately."""
    kinds = [(settings.get(part) or {}).get("type") for part in ("normalizer", "pre_tokenizer", "model")]
    added = [token["content"] for token in settings.get("added_tokens") or ()]
    return kinds == ["BertNormalizer", "BertPreTokenizer", "WordPiece"] and not any(
        character.isspace() for token in added for character in token
    )


class WordPieces:
    """Encodes texts as the tokenizer does, without special tokens around them.

    without_padding  called with the tokens of new words, to replace padding tokens
    """

    def __init__(
        self, tokenizer: Tokenizer, without_padding: Callable[[Sequence[int]], Sequence[int]]
    ) -> None:
        self._tokenizer = tokenizer
        self._without_padding = without_padding
        # As bytes of arrays, which are joined without a Python object for each number.
        self._numbers: dict[str, bytes] = {"": b""}
        #: Start and end of every token in its word.
        self._spans: dict[str, bytes] = {"": b""}

    def encode(self, texts: Sequence[str]) -> Pieces:
        """The tokens of texts."""
        if len(self._numbers) > _REMEMBERED:
            self._numbers, self._spans = {"": b""}, {"": b""}
        words = [_words(text) for text in texts]
        numbers, spans = self._join(words), self._spans
        return Pieces(numbers, lambda places: _places([words[place] for place in places], spans))

    def _join(self, texts: Sequence[Sequence[str]]) -> list[bytes]:
        """The tokens of each text, whose words are given."""
        joined, lacking = [], []
        for place, words in enumerate(texts):
            try:
                joined.append(self._look_up(words))
            except KeyError:
                joined.append(b"")
                lacking.append(place)
        new = set[str]().union(*[texts[place] for place in lacking]).difference(self._numbers)
        self._learn(list(new))
        for place in lacking:
            joined[place] = self._look_up(texts[place])
        return joined

    def _look_up(self, words: Sequence[str]) -> bytes:
        """The tokens of words. Raises KeyError for a new one."""
        # With one more, empty word: for a single key, itemgetter returns no tuple.
        return b"".join(itemgetter("", *words)(self._numbers))

    def _learn(self, words: Sequence[str]) -> None:
        """Remember the tokens of new words, which are encoded as a few texts: one text each is slower."""
        parts = [words[first : first + _WORDS_OF_A_TEXT] for first in range(0, len(words), _WORDS_OF_A_TEXT)]
        encodings = self._tokenizer.encode_batch([" ".join(part) for part in parts], add_special_tokens=False)
        for part, encoding in zip(parts, encodings, strict=True):
            begins = _begins(part)
            spans = np.fromiter(chain.from_iterable(encoding.offsets), dtype=np.int64).reshape(-1, 2)
            of = np.searchsorted(begins, spans[:, 1] - 1, side="right") - 1
            spans -= begins[of, None]
            cuts = np.searchsorted(of, np.arange(len(part) + 1))
            numbers = array("I", self._without_padding(encoding.ids)).tobytes()
            self._numbers.update(zip(part, _slices(numbers, _NUMBER * cuts), strict=True))
            self._spans.update(zip(part, _slices(spans.tobytes(), _SPAN * cuts), strict=True))


def _slices(of: bytes, cuts: Places) -> list[bytes]:
    return [of[a:b] for a, b in pairwise(cuts.tolist())]


def _places(texts: Sequence[Sequence[str]], known: Mapping[str, bytes]) -> Iterator[tuple[Places, Places]]:
    """Start and end of every token in each of some texts, whose words are given."""
    if not texts:
        return
    words = [word for each in texts for word in each]
    spans = [known[word] for word in words]
    tokens = np.fromiter(map(len, spans), dtype=np.int64, count=len(spans)) // _SPAN
    begins, counts = _begins(words), [len(each) for each in texts]
    firsts = np.cumsum([0, *counts[:-1]])
    # The words of all texts are joined into one text; each text is a part of it.
    begins -= np.repeat(begins[firsts], counts)
    places = np.frombuffer(b"".join(spans), dtype=np.int64).reshape(-1, 2)
    places = places + np.repeat(begins, tokens)[:, None]
    for part in np.split(places, np.cumsum(np.add.reduceat(tokens, firsts))[:-1]):
        yield part[:, 0], part[:, 1]


def _words(text: str) -> list[str]:
    """Split at common blanks, keeping empty words, which keep the positions in the text right.

    Other white space stays within a word and is left to the tokenizer.
    """
    return text.replace("\n", " ").replace("\r", " ").replace("\t", " ").split(" ")


def _begins(words: Sequence[str]) -> Places:
    """Return where each word begins in the text that they make, with a blank between two."""
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words)) + 1
    begins: Places = np.cumsum(lengths) - lengths
    return begins
