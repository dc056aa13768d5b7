"""Makes tokenizers: byte-level BPE from texts, characters, bytes, words of a dictionary."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from toolkit.files import write_atomic

PADDING, UNKNOWN, BEGIN, END = SPECIAL = ("<pad>", "<unk>", "<bos>", "<eos>")

#: Characters of the character tokenizer: 95, with the special tokens 99.
CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " "

#: As `toolkit.workloads.spelling.data.texts.words` cuts texts into pieces.
_PIECE = r"\w\S+\w|\w+|[^\w\s]+"


def train_bpe(
    lines: Iterable[str], vocabulary: int, *, min_frequency: int = 2, strip_accents: bool = False
) -> Tokenizer:
    """Train byte-level BPE (Sennrich et al. 2016; on bytes, Radford et al. 2019) on texts.

    Texts are streamed: only their distinct words are held. Every word begins with its space, the first
    one, too: so a word has the same tokens at any place, and those of a text are those of its words.

    vocabulary     tokens, special ones and the 256 bytes included; fewer if the texts give no more
    min_frequency  how often two tokens must be adjacent to be joined
    strip_accents  whether letters lose their accents (NFD without marks), which decoding does not bring back
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
    """Make the tokenizer of single characters: printable ASCII; any other one is unknown."""
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
    """Make the tokenizer of known words, as `pieces_of` cuts them out; any other one is unknown."""
    tokenizer = _of_words(known)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_PIECE), "removed", invert=True)
    return tokenizer


def save(tokenizer: Tokenizer, path: Path) -> None:
    """Write a tokenizer as JSON; the file appears when it is whole."""
    write_atomic(path, tokenizer.to_str(pretty=True) + "\n")


def _of_words(known: Sequence[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(_numbered(known), unk_token=UNKNOWN))
    tokenizer.add_special_tokens(list(SPECIAL))
    return tokenizer


def _numbered(tokens: Sequence[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(dict.fromkeys((*SPECIAL, *tokens)))}
