"""Make tokenizers: byte-level BPE from texts, characters, bytes, words of a dictionary."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from toolkit.files import write_atomic

PADDING, UNKNOWN, BEGIN, END = SPECIAL = ("<pad>", "<unk>", "<bos>", "<eos>")

#: The 95 characters of the character tokenizer; with the special tokens it has 99 tokens.
CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " "

#: The pieces of a word, as in data/texts/words.py.
_PIECE = r"\w\S+\w|\w+|[^\w\s]+"


def train_bpe(
    lines: Iterable[str], vocabulary: int, *, min_frequency: int = 2, strip_accents: bool = False
) -> Tokenizer:
    """Train byte-level BPE (Sennrich et al. 2016; on bytes, Radford et al. 2019) on texts.

    Texts are streamed: only their distinct words are in memory. Each word begins with its space, also the
    first word. So a word has the same tokens at any place, and a text has the tokens of its words.

    vocabulary     tokens, including special tokens and the 256 bytes; fewer if the texts do not have enough
    min_frequency  how often two tokens must be adjacent to be merged
    strip_accents  whether letters lose their accents (NFD without marks); decoding does not restore them
    """
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    if strip_accents:
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=min_frequency,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def characters() -> Tokenizer:
    """Make the tokenizer of single characters: printable ASCII; all others are unknown."""
    tokenizer = _of_words([*CHARACTERS])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


def byte_values() -> Tokenizer:
    """Make the tokenizer of the bytes of UTF-8."""
    vocabulary = _numbered(sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token=UNKNOWN))
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def words(known: Sequence[str]) -> Tokenizer:
    """Make the tokenizer of known words, cut like `pieces_of`; all others are unknown."""
    tokenizer = _of_words(known)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_PIECE), "removed", invert=True)
    return tokenizer


def save(tokenizer: Tokenizer, path: Path) -> None:
    """Write a tokenizer as JSON, atomically."""
    write_atomic(path, tokenizer.to_str(pretty=True) + "\n")


def _of_words(known: Sequence[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(_numbered(known), unk_token=UNKNOWN))
    tokenizer.add_special_tokens(list(SPECIAL))
    return tokenizer


def _numbered(tokens: Sequence[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(dict.fromkeys((*SPECIAL, *tokens)))}
