"""The files of a data section, their rows, and the fingerprint of their prepared set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolkit.data.sources.file_digests import memory_of
from toolkit.data.sources.source_files import SourceFile, file_state, with_fingerprint
from toolkit.data.sources.split_files import files_by_split
from toolkit.errors import DataError
from toolkit.nlp.tokenizers.tokenizer_files import content
from toolkit.workload import Progress
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data import layout
from toolkit.workloads.text_classification.data.sources.formats.file_kinds import Format, read_rows
from toolkit.workloads.text_classification.data.sources.formats.opening import open_problem
from toolkit.workloads.text_classification.data.sources.formats.prepared_table import (
    is_database,
    known_set,
    training_splits,
)
from toolkit.workloads.text_classification.data.sources.formats.table import Row

#: Labels and vocabulary are from this split.
TRAIN = "train"

#: Settings that determine the content of a prepared set, in addition to those of tokenizer, splits and files.
_SETTINGS = (
    "encoding", "columns", "text_column", "label_column", "labels", "unknown_labels", "max_tokens", "fold",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(SourceFile):
    """One table; `part` is the split if the table is a split of a prepared set."""

    format: Format
    part: str | None = None
    problem = staticmethod(open_problem)

    def rows(self, data: TextTable) -> Iterator[Row]:
        """Yield the rows. Raises DataError, as read_rows does."""
        return read_rows(self.path, data, self.part)


class PreparedTexts(Source):
    """The texts of a prepared set, or of one of its splits. Its digest is the set's fingerprint."""

    def check_unchanged(self) -> None:
        """Do nothing: runs add scores to the database, which changes the file but not the texts."""


def find_sources(data: TextTable, progress: Progress) -> tuple[Source, ...]:
    """Check the section's labels, and hash its files. Raises DataError."""
    check_labels(data)
    if data.path is not None and is_database(path := Path(data.path).expanduser()):
        splits = training_splits(path).items()
        return tuple(_prepared(path, split, part=split) for split, size in splits if size)
    return tuple(_source(path, split, data, progress) for split, path in files_by_split(data).items())


def one_source(data: TextTable, split: str, progress: Progress) -> Source:
    """Like `find_sources`, if the whole file `data.path` is one split. Raises DataError."""
    check_labels(data)
    assert data.path is not None
    if is_database(path := Path(data.path).expanduser()):
        return _prepared(path, split, part=None)
    return _source(path, split, data, progress)


def describe(data: TextTable, sources: Sequence[Source], **further: Any) -> dict[str, Any]:
    """Return everything that determines the content of the prepared set, with a fingerprint (SHA-256).

    further  other values that determine the content
    """
    settings: dict[str, Any] = {name: getattr(data, name) for name in _SETTINGS} | further
    settings |= _tokenizer_description(data)
    if sources[0].split is None:
        # Pairs, because the samples of the splits depend on the order of the splits.
        settings |= {
            "splits": [[name, float(share)] for name, share in data.splits.items()],
            "split_seed": data.split_seed,
            "stratify": data.stratify,
            "split_unit": data.split_unit,
        }
    files = [{"split": source.split, "sha256": source.sha256, **asdict(source.format)} for source in sources]
    return with_fingerprint({"version": layout.VERSION, "settings": settings, "sources": files})


def _prepared(path: Path, split: str, part: str | None) -> PreparedTexts:
    fingerprint = str(known_set(path)["fingerprint"])
    form = Format(delimiter=None, quoted=False)
    state = file_state(path)
    return PreparedTexts(path=path, split=split, sha256=fingerprint, state=state, format=form, part=part)


def _source(path: Path, split: str | None, data: TextTable, progress: Progress) -> Source:
    return Source.open(str(path), split, progress, memory_of(data), format=Format.of(path, data))


def check_labels(data: TextTable) -> None:
    """Raise DataError if data.labels is empty or names a label twice."""
    if data.labels is not None:
        repeated = sorted({label for label in data.labels if data.labels.count(label) > 1})
        if repeated:
            raise DataError(f"data.labels: found {', '.join(repeated)} more than once")
        if not data.labels:
            raise DataError("data.labels: found an empty list; give labels, or null for those of the data")


def _tokenizer_description(data: TextTable) -> dict[str, Any]:
    """Return the settings that determine the tokens; for a pretrained tokenizer, its content, not its path.

    Raises DataError if its files do not exist.
    """
    if data.tokenizer != "pretrained":
        names = ("tokenizer", "lowercase", "min_count", "max_vocabulary")
        return {name: getattr(data, name) for name in names}
    return {"tokenizer": data.tokenizer, **content(str(data.tokenizer_path))}
