"""A pretrained tokenizer with five more tokens, which mark a mention and the parts of an entity's text.

The numbers of the markers follow those of the vocabulary, so the model's table of tokens grows by five with
any tokenizer. Markers are inserted by number. A text with the name of a marker is ordinary text.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolkit.nlp.hub import pretrained_file
from toolkit.nlp.tokenizers.pretrained import PretrainedEncoder
from toolkit.nlp.tokenizers.tokenizer_files import TOKENIZER
from toolkit.nlp.tokens import NUMBER

ENT_START, ENT_END, ENT_TYPE, ENT_KG, ENT_DESC = MARKERS = (
    "[ent_start]", "[ent_end]", "[ent_type]", "[ent_kg]", "[ent_desc]",
)  # fmt: skip

#: Signs with a similar role in ordinary text. Their vectors are the initial vectors of the markers.
_LIKE = {ENT_START: '"', ENT_END: '"', ENT_TYPE: ",", ENT_KG: ",", ENT_DESC: ":"}

#: Words that are never hidden in a title, because they have no information.
_STOP_WORDS = (
    "a", "an", "and", "as", "at", "by", "de", "for", "from", "in", "is", "la", "le", "of", "on", "or", "the",
    "to", "with",
)  # fmt: skip


class MarkedTokenizer:
    """Encodes texts as numbers of tokens.

    before, after  numbers of the special tokens around every sample
    pad_id         number of the padding token; given if it must be the same as in another set
    mask_id        number that replaces a hidden token
    markers        number of each marker
    like           for each marker, the token that provides its initial vector; in the order of MARKERS
    size           count of all numbers
    """

    def __init__(self, path: str, max_tokens: int, pad_id: int | None = None) -> None:
        from tokenizers import Tokenizer

        self._encoder = PretrainedEncoder(path, max_tokens, pad_id, key="data.max_tokens")
        self._extended = Tokenizer.from_file(str(pretrained_file(path, TOKENIZER)))
        find = self._extended.token_to_id
        self.unk_id = self._encoder.unk_id if self._encoder.unk_id is not None else self._encoder.pad_id
        self.mask_id = next((n for n in map(find, ("[MASK]", "<mask>")) if n is not None), self.unk_id)
        found = [find(_LIKE[marker]) for marker in MARKERS]
        self.like = [self.unk_id if number is None else number for number in found]
        self.stop_ids = [number for number in map(find, _STOP_WORDS) if number is not None]
        self._extended.add_special_tokens(list(MARKERS))
        self.markers = {marker: int(find(marker) or 0) for marker in MARKERS}
        self.size = max(self._extended.get_vocab(with_added_tokens=True).values()) + 1
        self.before, self.after = tuple(self._encoder.before), tuple(self._encoder.after)
        self.pad_id = self._encoder.pad_id

    @property
    def specials(self) -> int:
        """The number of special tokens around every sample."""
        return len(self.before) + len(self.after)

    def encode(self, texts: Sequence[str]) -> list[npt.NDArray[np.uint32]]:
        """The numbers of each text, without special tokens."""
        given = [text if text.strip() else "" for text in texts]
        pieces = self._encoder.encode(given).numbers
        return [
            np.frombuffer(numbers if text else b"", dtype=NUMBER).copy()
            for text, numbers in zip(given, pieces, strict=True)
        ]

    def save(self, folder: Path) -> None:
        """Write the tokenizer with its markers, and its settings."""
        self._encoder.save(folder)
        self._extended.save(str(folder / TOKENIZER))


def write_without_markers(files: Sequence[Path], folder: Path) -> None:
    """Copy the files of a tokenizer with markers, without the markers.

    A tokenizer that is loaded from the copy gives its markers the same numbers. If they were in the file, the
    name of a marker in a text would be read as the marker.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        if file.name != TOKENIZER:
            shutil.copyfile(file, folder / file.name)
            continue
        settings = json.loads(file.read_text(encoding="utf-8"))
        settings["added_tokens"] = [
            each for each in settings["added_tokens"] if each["content"] not in MARKERS
        ]
        (folder / TOKENIZER).write_text(json.dumps(settings, ensure_ascii=False), encoding="utf-8")
