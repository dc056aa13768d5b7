"""A pretrained tokenizer: tokenizer.json, read by the tokenizers library."""

from __future__ import annotations

import hashlib
import json
import shutil
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from toolkit.data import layout
from toolkit.data.hub import no_model, optional_file, pretrained_file
from toolkit.data.tokens import Pieces, Places
from toolkit.data.wordpieces import WordPieces, is_wordwise
from toolkit.errors import DataError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


class PretrainedEncoder:
    """A tokenizer.json, read by the tokenizers library: texts in batches, on all cores, without the GIL.

    pad_id  where another set has settled it; None: as the files beside tokenizer.json say
    """

    def __init__(self, path: str, max_tokens: int, pad_id: int | None = None) -> None:
        self._path = path
        self._file = pretrained_file(path, layout.TOKENIZER)
        self._tokenizer, settings = _load(path, self._file)
        self.before: Sequence[int]
        self.after: Sequence[int]
        self.before, self.after = _special_tokens(self._tokenizer)
        specials = len(self.before) + len(self.after)
        if max_tokens <= specials:
            raise DataError(
                f"data.max_tokens is {max_tokens}, but the tokenizer in {path} puts {specials} special "
                f"tokens around every sample; expected at least {specials + 1}"
            )
        declared = _pad_id(path, self._file, self._tokenizer, settings) if pad_id is None else pad_id
        self.pad_id: int = declared
        self.unk_id: int | None = _unknown(self._tokenizer, settings["model"])
        self._words = WordPieces(self._tokenizer, self._without_padding) if is_wordwise(settings) else None

    def encode(self, texts: Sequence[str]) -> Pieces:
        pieces = self._pieces(texts) if self._words is None else self._words.encode(texts)
        if self.before or self.after:
            return pieces
        # Without special tokens around it a sample might have none at all.
        filler = array("I", [self._filler]).tobytes()
        return Pieces([numbers or filler for numbers in pieces.numbers], pieces.spans)

    def settle(self, counts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], list[tuple[str, int]]]:
        size = max(self._tokenizer.get_vocab(with_added_tokens=True).values()) + 1
        known = np.zeros(size, dtype=np.int64)
        known[: len(counts)] = counts
        names = [self._tokenizer.id_to_token(number) or "" for number in range(size)]
        return np.arange(size), list(zip(names, known.tolist(), strict=True))

    def save(self, folder: Path) -> None:
        shutil.copyfile(self._file, folder / layout.TOKENIZER)
        for name in layout.TOKENIZER_SETTINGS:
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
        """A text may spell the padding token, which must tell where a sample ends: it is then unknown."""
        if self.pad_id not in numbers:
            return numbers
        return [self._filler if number == self.pad_id else number for number in numbers]


def content(path: str) -> dict[str, Any]:
    """What decides the ids that a tokenizer gives, wherever it lies. Raises DataError where there is none."""
    file = pretrained_file(path, layout.TOKENIZER)
    with open(file, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"sha256": digest, "padding": _declared_padding(path, file)}


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
    return loaded, _read(file)


def _special_tokens(loaded: Tokenizer) -> tuple[list[int], list[int]]:
    """Ids that the tokenizer's own post-processor puts before and after one text."""
    encoding = loaded.encode("a")
    inner = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
    first, last = (inner[0], inner[-1] + 1) if inner else (len(encoding.ids), len(encoding.ids))
    return encoding.ids[:first], encoding.ids[last:]


def _spans(encoding: Encoding) -> tuple[Places, Places]:
    offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
    return offsets[:, 0], offsets[:, 1]


def _declared_padding(path: str, file: Path) -> str | int | None:
    """The padding token, or its id, that the files beside tokenizer.json name."""
    for name, key in (
        ("tokenizer_config.json", "pad_token"),
        ("special_tokens_map.json", "pad_token"),
        ("config.json", "pad_token_id"),
        ("tokenizer_config.json", "eos_token"),
        ("special_tokens_map.json", "eos_token"),
    ):
        found = _read(optional_file(path, name, file)).get(key)
        found = found.get("content") if isinstance(found, dict) else found
        if isinstance(found, str | int):
            return found
    return None


def _read(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: no JSON can be read there ({error})") from error
    return found if isinstance(found, dict) else {}


def _pad_id(path: str, file: Path, loaded: Tokenizer, settings: dict[str, Any]) -> int:
    declared = _declared_padding(path, file)
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
