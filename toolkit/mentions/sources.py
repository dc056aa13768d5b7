"""The files of sentences that a data section names, and the name of what is made of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.config.kinds import EntityMentions
from toolkit.data.pretrained import content
from toolkit.data.sources import Progress, file_sha256, file_state
from toolkit.entities.division import TEST, TRAIN, VALIDATION, split_of
from toolkit.entities.sentences import Sentence, read_sentences
from toolkit.entities.writing import folder_fingerprint
from toolkit.errors import DataError
from toolkit.mentions import layout

#: In the order in which they are told.
SPLITS = (TRAIN, VALIDATION, TEST)
#: Settings that decide what is made, besides the files.
_SETTINGS = (
    "use_weak_labels", "no_candidate", "max_candidates", "max_tokens", "window", "max_entity_tokens",
    "title", "types", "relations", "description", "type_systems", "max_type_words", "max_relation_words",
    "eval_slices", "slices", "torso_above", "head_above", "count_weak",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceFile:
    """One file; `split` is None where it is cut into several. `state` tells whether it changed."""

    path: Path
    split: str | None
    sha256: str
    state: tuple[int, int]

    @classmethod
    def open(cls, name: str, split: str | None, progress: Progress) -> SentenceFile:
        """Hash a file. Raises DataError."""
        path = Path(name).expanduser()
        try:
            state = file_state(path)
            sha256 = file_sha256(path, state[0], progress)
        except OSError as error:
            reason = error.strerror or error
            raise DataError(f"{path} cannot be read: {reason}; is it the file of sentences?") from error
        return cls(path=path, split=split, sha256=sha256, state=state)

    def sentences(self, data: EntityMentions) -> Iterator[tuple[str, Sentence]]:
        """Yield every sentence with its split. Raises DataError."""
        for sentence in read_sentences(self.path):
            yield self.split or split_of(sentence, data.split, _by(data)), sentence
        if file_state(self.path) != self.state:
            raise DataError(f"{self.path} changed while it was read; start again when its writer is done")


def find_files(data: EntityMentions, progress: Progress) -> tuple[SentenceFile, ...]:
    """Hash the files that a section names. Raises DataError."""
    if data.path is not None:
        return (SentenceFile.open(data.path, None, progress),)
    given = {TRAIN: data.train, VALIDATION: data.validation, TEST: data.test}
    return tuple(
        SentenceFile.open(name, split, progress) for split, name in given.items() if name is not None
    )


def describe(data: EntityMentions, files: Sequence[SentenceFile], base: str | None) -> dict[str, Any]:
    """Everything that decides what the prepared set holds, and its fingerprint (SHA-256).

    base  fingerprint of the set that counts and numbers of types are taken from
    """
    settings: dict[str, Any] = {name: getattr(data, name) for name in _SETTINGS}
    settings["tokenizer"] = content(data.tokenizer_path)
    if files[0].split is None:
        settings |= {"split": data.split, "split_by": data.split_by}
    description = {
        "version": layout.VERSION,
        "settings": settings,
        "sources": [{"split": each.split, "sha256": each.sha256} for each in files],
        # Of its files: what they say is read where the set is built, not by every process at every start.
        "entity_db": folder_fingerprint(Path(data.entity_db).expanduser()),
        "base": base,
    }
    fingerprint = hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()
    return description | {"fingerprint": fingerprint}


def _by(data: EntityMentions) -> Any:
    # Its choices are those of the division.
    return data.split_by
