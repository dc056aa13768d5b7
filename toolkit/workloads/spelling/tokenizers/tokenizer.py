"""The tokenizer of the tasks: from texts to token ids and the word of each token, and back to texts.

Imports no numpy, which takes time.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer

from toolkit.errors import DataError
from toolkit.workloads.spelling.tokenizers.make_tokenizer import SPECIAL


def load_tokenizer(path: Path) -> TextTokenizer:
    """Load a tokenizer from its JSON file. Raises DataError, also if it lacks a special token."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    try:
        tokenizer = Tokenizer.from_str(text)
    except BaseException as error:
        # The library raises plain exceptions, and a BaseException of its own if it fails within.
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise DataError(f"{path} is not a tokenizer of the tokenizers library: {error}") from error
    if missing := [token for token in SPECIAL if tokenizer.token_to_id(token) is None]:
        raise DataError(f"{path} lacks {', '.join(missing)}; make it with `stk spelling tokenizer`")
    return TextTokenizer(tokenizer)


def characters_expected(path: str, kind: str) -> str:
    """Say that a task of this kind needs another tokenizer."""
    return (
        f"{path} has no token for a space, expected one of single characters for {kind} "
        "(`stk spelling tokenizer characters`)"
    )


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

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def encode_words(self, text: str) -> tuple[list[int], list[int]]:
        """Return the tokens of a text's words, each word encoded separately, and the word of each token.

        Words are separated by white space, and each has at least one token. BPE gives the same tokens for the
        whole text.
        """
        tokens, words = list[int](), list[int]()
        for number, word in enumerate(text.split()):
            own = self._tokens_of(word)
            tokens += own
            words += [number] * len(own)
        return tokens, words

    def encode_word(self, word: str) -> tuple[list[int], list[int]]:
        """Return the tokens of a word, at least one, and where in the word each of them begins."""
        found = self._tokenizer.encode(word, add_special_tokens=False)
        if not found.ids:
            # A tokenizer that strips accents removes all characters of a word of accents.
            return [self.unknown], [0]
        return found.ids, [start for start, _ in found.offsets]

    def decode(self, numbers: Iterable[int]) -> str:
        """Return the text of token ids, without special tokens."""
        return self._tokenizer.decode(list(numbers), skip_special_tokens=True)
