"""A pretrained tokenizer with five tokens more, which mark a mention and the parts of an entity's text.

The markers get the numbers behind those of the vocabulary, so that the model's table of tokens grows by
them, whatever the tokenizer. They are put in by number: a text that spells one out is an ordinary text.
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

#: The initial vector of a marker: that of a sign with the same role in ordinary text.
_LIKE = {ENT_START: '"', ENT_END: '"', ENT_TYPE: ",", ENT_KG: ",", ENT_DESC: ":"}

#: Words that are never hidden in a title: they carry no information.
_STOP_WORDS = (
    "a", "an", "and", "as", "at", "by", "de", "for", "from", "in", "is", "la", "le", "of", "on", "or", "the",
    "to", "with",
)  # fmt: skip


class MarkedTokenizer:
    """Turns texts into numbers.

    before, after  numbers of the special tokens around every sample
    pad_id         fills a batch up; that of another set may be given, whose numbers these must be
    mask_id        replaces a hidden token
    markers        number of each marker
    like           the token that each marker's vector is first copied from, in the order of MARKERS
    size           how many numbers there are
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
        """Special tokens around every sample."""
        return len(self.before) + len(self.after)

    def encode(self, texts: Sequence[str]) -> list[npt.NDArray[np.uint32]]:
        """Numbers of each text, without special tokens."""
        given = [text if text.strip() else "" for text in texts]
        pieces = self._encoder.encode(given).numbers
        return [
            np.frombuffer(numbers if text else b"", dtype=NUMBER).copy()
            for text, numbers in zip(given, pieces, strict=True)
        ]

    def save(self, folder: Path) -> None:
        """Write the tokenizer with its markers, and the settings beside it."""
        self._encoder.save(folder)
        self._extended.save(str(folder / TOKENIZER))


def write_without_markers(files: Sequence[Path], folder: Path) -> None:
    """Copy the files of a tokenizer with markers; the copy, without them, makes one with the same numbers.

    With them, a text that spells a marker out would be read as the marker.
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
