"""A tokenizer as the tasks use it: numbers of tokens, whose word each is, and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from toolkit.errors import DataError
from toolkit.workloads.spelling.tokenizers.make_tokenizer import SPECIAL

Numbers = npt.NDArray[np.int32]

#: Distinct words whose tokens are remembered; then all are forgotten.
_REMEMBERED = 1 << 18
#: Words that are not remembered: they are rarely met again.
_LONG = 64


def load_tokenizer(path: Path) -> TextTokenizer:
    """Load a tokenizer from its JSON file. Raises DataError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:
        # The library has no class for it.
        raise DataError(f"{path} holds no tokenizer of the tokenizers library: {error}") from error
    return TextTokenizer(tokenizer, str(path))


class TextTokenizer:
    """Encodes texts without special tokens around them; what looks like one in a text is plain text.

    padding, unknown, begin, end  numbers of the special tokens
    space                         that of a space; None where spaces are within tokens
    """

    def __init__(self, tokenizer: Tokenizer, name: str = "the tokenizer") -> None:
        # Otherwise a text that contains <eos> would end there.
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        vocabulary = tokenizer.get_vocab()
        if missing := [token for token in SPECIAL if token not in vocabulary]:
            raise DataError(f"{name} lacks {', '.join(missing)}; make it with `stk spelling tokenizer`")
        self.padding, self.unknown, self.begin, self.end = (vocabulary[token] for token in SPECIAL)
        self.space: int | None = vocabulary.get(" ")
        self._known: dict[str, list[int]] = {}

    def __len__(self) -> int:
        """Return the number of tokens, special ones included."""
        return self._tokenizer.get_vocab_size()

    @property
    def reads_spaces(self) -> bool:
        """Whether every character is a token, a space, too; others have spaces within their tokens."""
        return self.space is not None

    def encode(self, text: str) -> Numbers:
        """Return the tokens of a text: [tokens]."""
        return np.array(self._tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int32)

    def encode_words(self, text: str) -> tuple[Numbers, Numbers]:
        """Return the tokens of a text's words, each word encoded alone, and the place of each token's word.

        [tokens] and [tokens]; words are what white space separates, and none is without a token. With
        BPE these are the tokens of the text.
        """
        tokens = [self._of_word(word) for word in text.split()]
        counts = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
        flat = np.fromiter((number for word in tokens for number in word), dtype=np.int32)
        return flat, np.repeat(np.arange(len(tokens), dtype=np.int32), counts)

    def encode_word(self, word: str) -> tuple[list[int], list[int]]:
        """Return the tokens of a word, at least one, and where in the word each of them begins."""
        found = self._tokenizer.encode(word, add_special_tokens=False)
        if not found.ids:
            return [self.unknown], [0]
        return found.ids, [start for start, _ in found.offsets]

    def decode(self, numbers: Sequence[int] | Numbers) -> str:
        """Return the text of tokens; special ones are left out."""
        return self._tokenizer.decode([int(number) for number in numbers], skip_special_tokens=True)

    def _of_word(self, word: str) -> list[int]:
        if (known := self._known.get(word)) is not None:
            return known
        # A word of marks alone may be nothing to a tokenizer that strips accents.
        tokens: list[int] = self._tokenizer.encode(word, add_special_tokens=False).ids or [self.unknown]
        if len(word) <= _LONG:
            if len(self._known) >= _REMEMBERED:
                self._known = {}
            self._known[word] = tokens
        return tokens
