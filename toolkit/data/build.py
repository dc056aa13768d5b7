"""Writing a prepared set into a folder, from a survey and a second reading of the sources."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.config.kinds import TextTable
from toolkit.data import layout, tables
from toolkit.data.encoders import Encoder
from toolkit.data.rows import Rows
from toolkit.data.sealed import seal, write_array
from toolkit.data.sources import TRAIN, Progress, Source
from toolkit.data.splits import SplitNumbers
from toolkit.data.survey import Survey, cut
from toolkit.data.tokens import NUMBER
from toolkit.data.writer import PROVISIONAL, Fragments, write_texts

#: Tokens mapped to their ids at a time.
_BLOCK_TOKENS = 1 << 18


def build(
    folder: Path,
    data: TextTable,
    sources: Sequence[Source],
    rows: Rows,
    survey: Survey,
    encoder: Encoder,
    description: dict[str, Any],
    progress: Progress,
) -> int:
    """Write a whole prepared set into an empty folder and flush it to disk; the manifest comes last.

    Returns how many texts were tokenized. Raises DataError where a source changed, OSError and
    sqlite3.Error where writing fails.
    """
    # The folder is nobody else's yet: no locks, which network file systems may lack, and no journal.
    uri = f"{(folder / layout.DATABASE).absolute().as_uri()}?mode=rwc&nolock=1"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as database:
        database.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN; {layout.SCHEMA}")
        tables.write_sources(database, sources, survey)
        fragments = write_texts(folder, database, data, sources, rows, survey, encoder, progress)
        splits = _sample_splits(data, sources, survey, fragments)
        final_ids, tokens = encoder.settle(_train_counts(folder, survey, fragments, splits))
        tables.write_label_counts(database, survey, fragments, splits)
        tables.write_tokens(database, tokens)
        dtype = layout.token_dtype(len(tokens))
        _encode(folder, database, survey, fragments, splits, final_ids.astype(dtype), progress)
        database.execute("COMMIT")
        database.executescript(layout.INDICES)
    encoder.save(folder)
    _write_arrays(folder, survey, fragments, splits)
    for source in sources:
        source.check_unchanged()
    facts = _summary(sources, survey, fragments, splits, encoder)
    facts |= {"token_dtype": dtype, "vocabulary_size": len(tokens)}
    seal(folder, description | facts)
    return fragments.texts


def _sample_splits(
    data: TextTable, sources: Sequence[Source], survey: Survey, fragments: Fragments
) -> SplitNumbers:
    """The split of every sample."""
    if survey.text_split is None:
        return cut(data, sources, survey.text_label[fragments.text_ids])
    return survey.text_split[fragments.text_ids]


def _blocks(folder: Path, fragments: Fragments) -> Iterator[tuple[slice, npt.NDArray[np.uint32]]]:
    """Yield runs of whole samples and their provisional tokens, some at a time."""
    ends = np.cumsum(fragments.lengths, dtype=np.int64)
    first = done = 0
    with open(folder / PROVISIONAL, "rb") as stream:
        while first < len(ends):
            stop = max(int(np.searchsorted(ends, done + _BLOCK_TOKENS, side="right")), first + 1)
            count = int(ends[stop - 1]) - done
            yield slice(first, stop), np.frombuffer(stream.read(count * NUMBER.itemsize), NUMBER)
            first, done = stop, done + count


def _train_counts(
    folder: Path, survey: Survey, fragments: Fragments, splits: SplitNumbers
) -> npt.NDArray[np.int64]:
    """How often each provisional number stands in the training split, if there is one."""
    counts = np.zeros(1, dtype=np.int64)
    if TRAIN not in survey.splits:
        return counts
    for part, numbers in _blocks(folder, fragments):
        chosen = np.repeat(splits[part] == survey.splits.index(TRAIN), fragments.lengths[part])
        found = np.bincount(numbers[chosen], minlength=len(counts))
        found[: len(counts)] += counts
        counts = found
    return counts


def _encode(
    folder: Path,
    database: sqlite3.Connection,
    survey: Survey,
    fragments: Fragments,
    splits: SplitNumbers,
    final_ids: npt.NDArray[np.unsignedinteger[Any]],
    progress: Progress,
) -> None:
    """Map the provisional numbers to ids, block by block, and write the samples."""
    done, total = 0, int(fragments.lengths.sum(dtype=np.int64))
    lists = tables.Lists(int(final_ids.max()) + 1)
    with open(folder / layout.TOKENS, "wb") as stream:
        for part, numbers in _blocks(folder, fragments):
            ids = final_ids[numbers]
            stream.write(ids.data)
            ends = np.cumsum(fragments.lengths[part], dtype=np.int64)
            tables.write_samples(database, survey, fragments, splits, part.start, [*lists.of(ids, ends)])
            done += len(ids)
            progress("encode", done, total)
    (folder / PROVISIONAL).unlink()


def _write_arrays(folder: Path, survey: Survey, fragments: Fragments, splits: SplitNumbers) -> None:
    offsets = np.zeros(len(fragments) + 1, dtype=layout.OFFSET_DTYPE)
    np.cumsum(fragments.lengths, out=offsets[1:])
    write_array(folder / layout.OFFSETS, offsets)
    write_array(folder / layout.LABELS, survey.text_label[fragments.text_ids].astype(layout.LABEL_DTYPE))
    write_array(folder / layout.TEXT_IDS, fragments.text_ids.astype(layout.ID_DTYPE))
    for number, split in enumerate(survey.splits):
        ids = np.flatnonzero(splits == number)
        write_array(folder / layout.split_file(split), ids.astype(layout.ID_DTYPE))


def _summary(
    sources: Sequence[Source], survey: Survey, fragments: Fragments, splits: SplitNumbers, encoder: Encoder
) -> dict[str, Any]:
    """What the manifest tells beyond the description."""
    sizes = np.bincount(splits, minlength=len(survey.splits)).tolist()
    return {
        "files_read": [str(source.path) for source in sources],
        "rows_read": survey.source_rows,
        "skipped": survey.skipped.to_json(),
        "texts": fragments.texts,
        "cut_texts": fragments.cut_texts,
        "samples": len(fragments),
        "splits": dict(zip(survey.splits, sizes, strict=True)),
        "labels": survey.labels,
        "tokens": int(fragments.lengths.sum(dtype=np.int64)),
        "pad_id": encoder.pad_id,
        "unk_id": encoder.unk_id,
    }
