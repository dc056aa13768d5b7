"""Encode a text with errors: tokens, pieces, words, features, labels, and the tokens of its target."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolkit.data.ragged import Array
from toolkit.workloads.spelling.config.data import SpellingTexts
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.layout import NO_PIECE, UNKNOWN
from toolkit.workloads.spelling.data.texts.dictionary import read_dictionary
from toolkit.workloads.spelling.data.texts.features import FEATURES, RealWords, WordFeatures
from toolkit.workloads.spelling.data.texts.repairs import repaired_text, repairs_of
from toolkit.workloads.spelling.data.texts.words import pieces_of, word_labels
from toolkit.workloads.spelling.tokenizers.tokenizer import load_tokenizer

_NONE = np.zeros(0)
_BITS = 1 << np.arange(len(FEATURES))
#: An extra bit after the features of a piece: whether its word is real. Models do not read it.
REAL = 1 << len(FEATURES)


class TextEncoder:
    """Encodes samples as a data section describes; loads its tokenizers and dictionary. Raises DataError."""

    def __init__(self, data: SpellingTexts) -> None:
        dictionary = read_dictionary(Path(data.dictionary)) if data.dictionary else {}
        output = data.output_tokenizer_path
        self.tokenizer = load_tokenizer(Path(data.tokenizer_path))
        self.output = load_tokenizer(Path(output)) if output else None
        self._features, self._real = WordFeatures(dictionary), RealWords(dictionary)
        # Each distinct word is encoded once.
        of_word = self._characters if self.tokenizer.reads_spaces else self._word_tokens
        self._of_word = lru_cache(maxsize=1 << 18)(of_word)

    def lists(
        self,
        text: str,
        target: str | None = None,
        labels: tuple[int, ...] | None = None,
        spaced: str | None = None,
    ) -> dict[str, Array]:
        """Return the lists of a sample by name, as in the layout.

        target  the right text; None: it is not known, or the text itself
        labels  labels of the words, or one for the text; None: words that differ from the target are wrong.
                They are unknown if the target has more or fewer words for another reason than noise
        spaced  the text before noise changed its white space; None if it was not changed
        """
        repaired, repairs = text, _NONE
        outputs: tuple[list[int], list[int]] = ([], [])
        # Labels do not show the right words.
        if self.output is not None and labels is None:
            outputs = self.output.encode_words(text if target is None else target)
        if self.tokenizer.reads_spaces:
            known = repaired_text(text, target, labels, spaced)
            repaired = text if known is None else known
            repairs = np.full(len(text) + 2, UNKNOWN, dtype=np.uint8)
            if known is not None and labels is None:
                repairs[1:-1] = repairs_of(text, known)
            labels = (UNKNOWN,) * len(text.split()) if known is None else labels
        elif spaced is None and target is not None and len(target.split()) != len(text.split()):
            labels = (UNKNOWN,)
        words = repaired.split()
        tokens, pieces = self._tokens(text, words)
        features, word_of_piece = self._features.of(words)
        real = self._real.of(words)[word_of_piece]
        return {
            layout.TOKENS: tokens, layout.PIECES: pieces, layout.WORDS: word_of_piece,
            layout.FEATURES: features @ _BITS + real * REAL, layout.REPAIRS: repairs,
            layout.LABELS: _labels(repaired, target, labels, len(words)),
            layout.OUTPUTS: np.array(outputs[0], np.int64),
            layout.OUTPUT_WORDS: np.array(outputs[1], np.int64),
        }  # fmt: skip

    def _tokens(self, text: str, words: list[str]) -> tuple[Array, Array]:
        """Return the tokens of a text between special tokens, and the piece of each token; [L], [L].

        words  words of the text; with a tokenizer of characters, its words after white space is repaired
        """
        tokens, pieces, before = list[int](), list[int](), 0
        for word in words:
            own, own_pieces, count = self._of_word(word)
            tokens += own
            pieces += [before + piece for piece in own_pieces]
            before += count
        if self.tokenizer.reads_spaces:
            tokens = self.tokenizer.encode(text)
            assert len(tokens) == len(text)
            of_visible = iter(pieces)
            pieces = [NO_PIECE if character.isspace() else next(of_visible) for character in text]
        tokens = [self.tokenizer.begin, *tokens, self.tokenizer.end]
        return np.array(tokens, dtype=np.uint32), np.array([NO_PIECE, *pieces, NO_PIECE], dtype=np.int64)

    def _word_tokens(self, word: str) -> tuple[list[int], list[int], int]:
        """Return the tokens of a word, the piece of each, and the number of pieces."""
        tokens, starts = self.tokenizer.encode_word(word)
        firsts = [piece.characters[0] for piece in pieces_of(word)]
        return tokens, [max(bisect_right(firsts, start) - 1, 0) for start in starts], len(firsts)

    def _characters(self, word: str) -> tuple[list[int], list[int], int]:
        """Return no tokens, the piece of each character of a word, and the number of pieces."""
        spans = [piece.characters for piece in pieces_of(word)]
        pieces = [number for number, (start, end) in enumerate(spans) for _ in range(start, end)]
        return [], pieces, len(spans)


def _labels(text: str, target: str | None, labels: tuple[int, ...] | None, words: int) -> Array:
    if labels is None:
        return np.array(word_labels(text, text if target is None else target), dtype=np.uint8)
    return np.array(labels if len(labels) == words else [UNKNOWN] * words, dtype=np.uint8)


def unpack_features(bits: Array) -> npt.NDArray[np.uint8]:
    """Unpack features into 0 and 1: [...] to [..., features]."""
    found: npt.NDArray[np.uint8] = ((bits[..., None] & _BITS) > 0).astype(np.uint8)
    return found
