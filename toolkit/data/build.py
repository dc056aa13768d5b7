"""Writing a prepared set into a folder, from a survey and a second reading of the sources."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.config.kinds import TextTable
from toolkit.data import layout
from toolkit.data.sources import Progress, Source
from toolkit.data.survey import Survey
from toolkit.data.table import read_rows
from toolkit.data.tokens import PAD_ID, RESERVED, UNK_ID, Vocabulary
from toolkit.data.writer import SampleWriter
from toolkit.files import crc32, fsync_dir, write_json

#: Tokens mapped to their ids at a time.
_BLOCK_TOKENS = 1 << 22
_PROVISIONAL = "tokens.provisional"
_PROVISIONAL_DTYPE = np.dtype(np.uint32)


def build(
    folder: Path,
    data: TextTable,
    sources: Sequence[Source],
    survey: Survey,
    description: dict[str, Any],
    progress: Progress,
) -> None:
    """Write a whole prepared set into an empty folder and flush it to disk; the manifest comes last.

    Raises DataError where a source changed, OSError and sqlite3.Error where writing fails.
    """
    # The folder is nobody else's yet: no locks, which network file systems may lack, and no journal.
    uri = f"{(folder / layout.DATABASE).absolute().as_uri()}?mode=rwc&nolock=1"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as database:
        database.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN; {layout.SCHEMA}")
        writer = _write_samples(folder, database, data, sources, survey, progress)
        vocabulary = writer.vocabulary()
        _write_tables(database, sources, survey)
        _write_token_table(database, vocabulary, writer.train_tokens)
        database.execute("COMMIT")
    vocabulary.save(folder / layout.VOCABULARY)
    _encode(folder, writer.final_ids(vocabulary), layout.token_dtype(len(vocabulary)), progress)
    _write_arrays(folder, survey, writer.lengths)
    for source in sources:
        source.check_unchanged()
    _seal(folder, description | _summary(sources, survey, writer, vocabulary))


def _write_samples(
    folder: Path,
    database: sqlite3.Connection,
    data: TextTable,
    sources: Sequence[Source],
    survey: Survey,
    progress: Progress,
) -> SampleWriter:
    with open(folder / _PROVISIONAL, "wb") as stream:
        writer = SampleWriter(data=data, survey=survey, database=database, stream=stream)
        for number, source in enumerate(sources):
            writer.write(number, read_rows(source.path, data), progress)
    return writer


def _write_tables(database: sqlite3.Connection, sources: Sequence[Source], survey: Survey) -> None:
    files = [
        (number, str(source.path), source.sha256, rows)
        for number, (source, rows) in enumerate(zip(sources, survey.source_rows, strict=True))
    ]
    database.executemany("INSERT INTO sources VALUES (?, ?, ?, ?)", files)
    database.executemany("INSERT INTO labels VALUES (?, ?)", enumerate(survey.labels))
    counts = [
        (split, label, count)
        for split, row in zip(survey.splits, survey.counts().tolist(), strict=True)
        for label, count in enumerate(row)
    ]
    database.executemany("INSERT INTO label_counts VALUES (?, ?, ?)", counts)


def _write_token_table(database: sqlite3.Connection, vocabulary: Vocabulary, train_tokens: int) -> None:
    unknown = train_tokens - sum(vocabulary.counts)
    reserved = [(PAD_ID, RESERVED[PAD_ID], 0), (UNK_ID, RESERVED[UNK_ID], unknown)]
    ids = range(len(RESERVED), len(vocabulary))
    database.executemany("INSERT INTO tokens VALUES (?, ?, ?)", reserved)
    database.executemany(
        "INSERT INTO tokens VALUES (?, ?, ?)", zip(ids, vocabulary.tokens, vocabulary.counts, strict=True)
    )


def _encode(folder: Path, final_ids: npt.NDArray[np.int64], dtype: str, progress: Progress) -> None:
    """Map the provisional numbers to ids, block by block."""
    ids = final_ids.astype(dtype)
    done, total = 0, (folder / _PROVISIONAL).stat().st_size // _PROVISIONAL_DTYPE.itemsize
    with open(folder / _PROVISIONAL, "rb") as provisional, open(folder / layout.TOKENS, "wb") as stream:
        while block := provisional.read(_BLOCK_TOKENS * _PROVISIONAL_DTYPE.itemsize):
            numbers = np.frombuffer(block, dtype=_PROVISIONAL_DTYPE)
            stream.write(ids[numbers].data)
            done += len(numbers)
            progress("encode", done, total)
    (folder / _PROVISIONAL).unlink()


def _write_arrays(folder: Path, survey: Survey, lengths: npt.NDArray[np.int32]) -> None:
    offsets = np.zeros(len(survey) + 1, dtype=layout.OFFSET_DTYPE)
    np.cumsum(lengths, out=offsets[1:])
    _write(folder / layout.OFFSETS, offsets)
    _write(folder / layout.LABELS, survey.sample_label.astype(layout.LABEL_DTYPE))
    for number, split in enumerate(survey.splits):
        ids = np.flatnonzero(survey.sample_split == number)
        _write(folder / layout.split_file(split), ids.astype(layout.ID_DTYPE))


def _write(path: Path, values: npt.NDArray[Any]) -> None:
    # Not tofile: its errors lose the reason, such as a full disk.
    with open(path, "wb") as stream:
        stream.write(values.data)


def _summary(
    sources: Sequence[Source], survey: Survey, writer: SampleWriter, vocabulary: Vocabulary
) -> dict[str, Any]:
    """What the manifest tells beyond the description."""
    sizes = np.bincount(survey.sample_split, minlength=len(survey.splits)).tolist()
    return {
        "files_read": [str(source.path) for source in sources],
        "rows_read": survey.source_rows,
        "samples": writer.written,
        "splits": dict(zip(survey.splits, sizes, strict=True)),
        "labels": survey.labels,
        "tokens": int(writer.lengths.sum(dtype=np.int64)),
        "token_dtype": layout.token_dtype(len(vocabulary)),
        "vocabulary_size": len(vocabulary),
        "empty_texts": writer.empty_texts,
        "cut_texts": writer.cut_texts,
    }


def _seal(folder: Path, meta: dict[str, Any]) -> None:
    """Flush every file to disk, then write the manifest with their sizes and checksums."""
    files = {}
    for path in sorted(folder.iterdir()):
        with open(path, "rb") as stream:
            os.fsync(stream.fileno())
        files[path.name] = {"size": path.stat().st_size, "crc32": crc32(path)}
    write_json(folder / layout.META, meta | {"files": files})
    fsync_dir(folder)
