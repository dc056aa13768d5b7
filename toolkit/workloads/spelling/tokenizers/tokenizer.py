"""The tokenizer of the tasks: from texts to token ids and the word of each token, and back to texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from toolkit.workloads.spelling.tokenizers.make_tokenizer import SPECIAL
from toolkit.workloads.spelling.tokenizers.tokenizer_file import read_tokenizer

Numbers = npt.NDArray[np.int32]


def load_tokenizer(path: Path) -> TextTokenizer:
    """Load a tokenizer from its JSON file. Raises DataError."""
    return TextTokenizer(read_tokenizer(path))


class TextTokenizer:
    """Encodes texts without special tokens around them. A special token's name in a text is plain text.

    padding, unknown, begin, end  ids of the special tokens
    space                         id of a space; None if spaces are within other tokens
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        # Otherwise a text with <eos> in it would end there.
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        vocabulary = tokenizer.get_vocab()
        self.padding, self.unknown, self.begin, self.end = (vocabulary[token] for token in SPECIAL)
        self.space: int | None = vocabulary.get(" ")
        self._tokens_of = lru_cache(maxsize=1 << 18)(lambda word: self.encode_word(word)[0])

    def __len__(self) -> int:
        """Return the number of tokens, special ones included."""
        return self._tokenizer.get_vocab_size()

    @property
    def reads_spaces(self) -> bool:
        """Whether each character is a token, including spaces."""
        return self.space is not None

    def encode(self, text: str) -> Numbers:
        """Return the tokens of a text: [tokens]."""
        return np.array(self._tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int32)

    def encode_words(self, text: str) -> tuple[Numbers, Numbers]:
        """Return the tokens of a text's words, each word encoded separately, and the word of each token.

        [tokens] and [tokens]. Words are separated by white space, and each has at least one token. BPE gives
        the same tokens for the whole text.
        """
        tokens = [self._tokens_of(word) for word in text.split()]
        counts = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
        flat = np.fromiter((number for word in tokens for number in word), dtype=np.int32)
        return flat, np.repeat(np.arange(len(tokens), dtype=np.int32), counts)

    def encode_word(self, word: str) -> tuple[list[int], list[int]]:
        """Return the tokens of a word, at least one, and where in the word each of them begins."""
        found = self._tokenizer.encode(word, add_special_tokens=False)
        if not found.ids:
            # A tokenizer that strips accents removes all characters of a word of accents.
            return [self.unknown], [0]
        return found.ids, [start for start, _ in found.offsets]

    def decode(self, numbers: Sequence[int] | Numbers) -> str:
        """Return the text of token ids, without special tokens."""
        return self._tokenizer.decode([int(number) for number in numbers], skip_special_tokens=True)
