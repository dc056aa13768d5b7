"""The files of sentences of a data section, and the fingerprint of their prepared set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.data.sources.file_digests import memory_of, remembered
from toolkit.data.sources.source_files import SourceFile, with_fingerprint
from toolkit.data.sources.split_files import files_by_split
from toolkit.nlp.tokenizers.tokenizer_files import content
from toolkit.workload import Progress
from toolkit.workloads.entity_disambiguation.config import EntityMentions
from toolkit.workloads.entity_disambiguation.data.entities.division import split_of
from toolkit.workloads.entity_disambiguation.data.entities.sentences import Sentence, read_sentences
from toolkit.workloads.entity_disambiguation.data.entities.write_folder import files_of, folder_fingerprint
from toolkit.workloads.entity_disambiguation.data.samples import layout

#: Settings that decide the content of a prepared set, besides the files.
_SETTINGS = (
    "use_weak_labels", "no_candidate", "max_candidates", "max_tokens", "window", "max_entity_tokens",
    "title", "types", "relations", "description", "type_systems", "max_type_words", "max_relation_words",
    "eval_slices", "slices", "torso_above", "head_above", "count_weak",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceFile(SourceFile):
    def sentences(self, data: EntityMentions) -> Iterator[tuple[str, Sentence]]:
        """Yield every sentence with its split. Raises DataError."""
        for sentence in read_sentences(self.path):
            yield self.split or split_of(sentence, data.split, data.split_by), sentence
        self.check_unchanged()


def find_sources(data: EntityMentions, progress: Progress) -> tuple[SentenceFile, ...]:
    """Hash the files of a section. Raises DataError."""
    files, memory = files_by_split(data), memory_of(data)
    return tuple(SentenceFile.open(str(path), split, progress, memory) for split, path in files.items())


def describe(data: EntityMentions, files: Sequence[SentenceFile], base: str | None = None) -> dict[str, Any]:
    """Return everything that determines the content of the prepared set, with a fingerprint (SHA-256).

    base  fingerprint of the training set that provides counts and numbers of types, or None
    """
    settings: dict[str, Any] = {name: getattr(data, name) for name in _SETTINGS}
    folder = Path(data.entity_db).expanduser()
    settings["tokenizer"] = content(data.tokenizer_path)
    if files[0].split is None:
        settings |= {"split": data.split, "split_by": data.split_by}
    description = {
        "version": layout.VERSION,
        "settings": settings,
        "sources": [{"split": each.split, "sha256": each.sha256} for each in files],
        # The fingerprint of its files is remembered, so that not every start reads the database.
        "entity_db": remembered(
            folder, files_of(folder), lambda: folder_fingerprint(folder), memory_of(data)
        ),
        "base": base,
    }
    return with_fingerprint(description)
