"""A pretrained tokenizer: tokenizer.json, read by the tokenizers library."""

from __future__ import annotations

import shutil
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError
from toolkit.nlp.hub import no_model, optional_file, pretrained_file
from toolkit.nlp.tokenizers.tokenizer_files import (
    TOKENIZER,
    TOKENIZER_SETTINGS,
    declared_padding,
    read_json_object,
)
from toolkit.nlp.tokenizers.wordpieces import WordPieces, is_wordwise
from toolkit.nlp.tokens import Pieces, Places

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


class PretrainedEncoder:
    """A tokenizer.json, read by the tokenizers library: texts in batches, on all cores, without the GIL.

    pad_id  that of another set, if the ids must be the same; None: from the files beside tokenizer.json
    key     the option that sets max_tokens, for the message
    """

    def __init__(
        self, path: str, max_tokens: int, pad_id: int | None = None, *, key: str = "max_tokens"
    ) -> None:
        self._path = path
        self._file = pretrained_file(path, TOKENIZER)
        self._tokenizer, settings = _load(path, self._file)
        self.before, self.after = _special_tokens(self._tokenizer)
        specials = len(self.before) + len(self.after)
        if max_tokens <= specials:
            raise DataError(
                f"{key} is {max_tokens}, but the tokenizer in {path} puts {specials} special "
                f"tokens around every sample; expected at least {specials + 1}"
            )
        self.pad_id = _pad_id(path, self._file, self._tokenizer, settings) if pad_id is None else pad_id
        self.unk_id = _unknown(self._tokenizer, settings["model"])
        self._words = WordPieces(self._tokenizer, self._without_padding) if is_wordwise(settings) else None

    def encode(self, texts: Sequence[str]) -> Pieces:
        """Cut texts into tokens, at least one each, special ones included."""
        pieces = self._pieces(texts) if self._words is None else self._words.encode(texts)
        if self.before or self.after:
            return pieces
        # Without special tokens around it a sample might have none at all.
        filler = array("I", [self._filler]).tobytes()
        return Pieces([numbers or filler for numbers in pieces.numbers], pieces.spans)

    def finalize(self, counts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], list[tuple[str, int]]]:
        """Return the ids, which equal the numbers, and the token of each with its count."""
        size = max(self._tokenizer.get_vocab(with_added_tokens=True).values()) + 1
        known = np.zeros(size, dtype=np.int64)
        known[: len(counts)] = counts
        names = [self._tokenizer.id_to_token(number) or "" for number in range(size)]
        return np.arange(size), list(zip(names, known.tolist(), strict=True))

    def save(self, folder: Path) -> None:
        """Copy the tokenizer and its settings into a folder."""
        shutil.copyfile(self._file, folder / TOKENIZER)
        for name in TOKENIZER_SETTINGS:
            if (found := optional_file(self._path, name, self._file)) is not None:
                shutil.copyfile(found, folder / name)

    def _pieces(self, texts: Sequence[str]) -> Pieces:
        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        numbers = [array("I", self._without_padding(encoding.ids)).tobytes() for encoding in found]
        return Pieces(numbers, lambda places: (_spans(found[place]) for place in places))

    @property
    def _filler(self) -> int:
        return self.pad_id if self.unk_id is None else self.unk_id

    def _without_padding(self, numbers: Sequence[int]) -> Sequence[int]:
        """Replace padding tokens in a text by the unknown token: padding must mark only a sample's end."""
        if self.pad_id not in numbers:
            return numbers
        return [self._filler if number == self.pad_id else number for number in numbers]


def _load(path: str, file: Path) -> tuple[Tokenizer, dict[str, Any]]:
    """The tokenizer, and the settings in its file."""
    from tokenizers import Tokenizer

    try:
        loaded = Tokenizer.from_file(str(file))
    # The library raises plain Exception.
    except Exception as error:
        raise no_model(path, error) from error
    loaded.no_truncation()
    loaded.no_padding()
    return loaded, read_json_object(file)


def _special_tokens(loaded: Tokenizer) -> tuple[Sequence[int], Sequence[int]]:
    """Ids that the tokenizer's own post-processor puts before and after one text."""
    encoding = loaded.encode("a")
    inner = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
    first, last = (inner[0], inner[-1] + 1) if inner else (len(encoding.ids), len(encoding.ids))
    return encoding.ids[:first], encoding.ids[last:]


def _spans(encoding: Encoding) -> tuple[Places, Places]:
    offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
    return offsets[:, 0], offsets[:, 1]


def _pad_id(path: str, file: Path, loaded: Tokenizer, settings: dict[str, Any]) -> int:
    declared = declared_padding(path, file)
    found = loaded.token_to_id(declared) if isinstance(declared, str) else declared
    if found is None:
        found = (settings.get("padding") or {}).get("pad_id", loaded.token_to_id("[PAD]"))
    if found is None:
        raise DataError(
            f"the tokenizer in {path} names no padding token, which a batch of unequal texts needs; name one "
            'of its tokens in tokenizer_config.json, as "pad_token"'
        )
    return int(found)


def _unknown(loaded: Tokenizer, model: dict[str, Any]) -> int | None:
    """Id of the unknown token: Unigram names the id, the other models the token."""
    if isinstance(number := model.get("unk_id"), int):
        return number
    token = model.get("unk_token")
    found: int | None = None if token is None else loaded.token_to_id(token)
    return found
