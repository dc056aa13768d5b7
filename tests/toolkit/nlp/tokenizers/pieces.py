"""Small pretrained tokenizers, made here, so that nothing is fetched."""

from __future__ import annotations

import json
from array import array
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from toolkit.nlp.tokens import Pieces

#: Twelve words, as one counts them between blanks, and fourteen word pieces, also of the real tokenizer.
SENTENCE = "the old letter was opened, twice and then read aloud at dinner."
PIECES = [
    "the", "old", "letter", "was", "opened", ",", "twice", "and", "then", "read", "aloud", "at",
    "dinner", ".",
]  # fmt: skip

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_WORDS = (*dict.fromkeys(PIECES), "good", "bad", "film", "a", "b", "c", "##a", "##b", "!", "?", "cafe")


def token_numbers(pieces: Pieces) -> list[list[int]]:
    """The numbers of each text's tokens."""
    return [array("I", numbers).tolist() for numbers in pieces.numbers]


def bert(folder: Path, *, padding: str | None = "[PAD]") -> str:
    """A folder with a lower-casing WordPiece tokenizer as BERT's; its pieces are few."""
    ids = {token: number for number, token in enumerate((*_SPECIAL, *_WORDS))}
    made = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])]
    )
    made.add_special_tokens(list(_SPECIAL))
    return save(folder, made, padding)


def byte_level(folder: Path, *, padding: str | None = "<pad>") -> str:
    """A folder with a byte-level tokenizer as RoBERTa's: blanks belong to the token behind them."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    ids = {token: number for number, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", *letters])}
    merges = [("Ġ", "t"), ("h", "e"), ("Ġt", "he")]
    for merge in merges:
        ids["".join(merge)] = len(ids)
    made = Tokenizer(models.BPE(ids, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    made.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    return save(folder, made, padding)


def bare(folder: Path) -> str:
    """A folder with a tokenizer that adds no special tokens and knows every word of two letters, a and b."""
    ids = {"<pad>": 0, "<unk>": 1, "aa": 2, "ab": 3, "ba": 4, "bb": 5}
    made = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    made.normalizer = normalizers.Strip()
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return save(folder, made, "<pad>")


def save(folder: Path, tokenizer: Tokenizer, padding: str | None) -> str:
    """Write a tokenizer as Hugging Face folders hold it; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {} if padding is None else {"pad_token": padding}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return str(folder)
