"""Writing a prepared set into a folder, from a survey and a second reading of the sources."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.data.prepared.arrays import write_array
from toolkit.data.prepared.columns import split_ids, token_dtype
from toolkit.data.prepared.database import commit, new_database
from toolkit.data.prepared.manifest import write_manifest
from toolkit.data.ragged import offsets_of
from toolkit.nlp.tokens import NUMBER
from toolkit.workload import Progress
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data import layout
from toolkit.workloads.text_classification.data.encoders import Encoder
from toolkit.workloads.text_classification.data.sources.first_pass import Survey, cut
from toolkit.workloads.text_classification.data.sources.source_files import TRAIN, Rows, Source
from toolkit.workloads.text_classification.data.sources.splits import SplitNumbers
from toolkit.workloads.text_classification.data.writer import PROVISIONAL, Fragments, write_texts

#: Tokens mapped to their ids at a time.
_BLOCK_TOKENS = 1 << 18

Numbers = npt.NDArray[np.integer]


def build(
    folder: Path,
    data: TextTable,
    sources: Sequence[Source],
    rows: Rows,
    survey: Survey,
    encoder: Encoder,
    description: dict[str, Any],
    progress: Progress,
) -> None:
    """Write a whole prepared set into an empty folder and flush it to disk; the manifest comes last.

    Raises DataError where a source changed, OSError and sqlite3.Error where writing fails.
    """
    with new_database(folder, layout.SCHEMA) as database:
        files = enumerate(zip(sources, survey.source_rows, strict=True))
        lines = ((number, str(file.path), file.sha256, count) for number, (file, count) in files)
        database.executemany("INSERT INTO sources VALUES (?, ?, ?, ?)", lines)
        database.executemany("INSERT INTO labels VALUES (?, ?)", enumerate(survey.labels))
        fragments = write_texts(folder, database, data, sources, rows, survey, encoder, progress)
        splits = _sample_splits(data, sources, survey, fragments)
        final_ids, tokens = encoder.finalize(_train_counts(folder, survey, fragments, splits))
        _write_label_counts(database, survey, fragments, splits)
        counted = ((number, *token) for number, token in enumerate(tokens))
        database.executemany("INSERT INTO tokens VALUES (?, ?, ?)", counted)
        dtype = token_dtype(len(tokens))
        _encode(folder, database, survey, fragments, splits, final_ids.astype(dtype), progress)
        commit(database, layout.INDICES)
    encoder.save(folder)
    _write_arrays(folder, survey, fragments, splits)
    for source in sources:
        source.check_unchanged()
    facts = _summary(sources, survey, fragments, splits, encoder)
    facts |= {"token_dtype": dtype, "vocabulary_size": len(tokens)}
    write_manifest(folder, description | facts)


def _sample_splits(
    data: TextTable, sources: Sequence[Source], survey: Survey, fragments: Fragments
) -> SplitNumbers:
    """The split of every sample."""
    if survey.text_split is None:
        return cut(data, sources, survey.text_label[fragments.text_ids])
    return survey.text_split[fragments.text_ids]


def _blocks(folder: Path, fragments: Fragments) -> Iterator[tuple[slice, npt.NDArray[np.uint32]]]:
    """Yield runs of whole samples and their provisional tokens, a block at a time."""
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
    """Return the count of each provisional number in the training split, if there is one."""
    counts = np.zeros(1, dtype=np.int64)
    if TRAIN not in survey.splits:
        return counts
    for part, numbers in _blocks(folder, fragments):
        chosen = np.repeat(splits[part] == survey.splits.index(TRAIN), fragments.lengths[part])
        found = np.bincount(numbers[chosen], minlength=len(counts))
        found[: len(counts)] += counts
        counts = found
    return counts


def _write_label_counts(
    database: sqlite3.Connection, survey: Survey, fragments: Fragments, splits: SplitNumbers
) -> None:
    """Write how many texts and samples of each label are in each split, zeros included."""
    shape = len(survey.splits), len(survey.labels)

    def table(text_ids: Numbers, splits: Numbers) -> list[int]:
        cells = splits.astype(np.int64) * shape[1] + survey.text_label[text_ids]
        counts: list[int] = np.bincount(cells, minlength=shape[0] * shape[1]).tolist()
        return counts

    # One for each text that has a fragment in a split.
    pairs = np.unique(fragments.text_ids * shape[0] + splits)
    texts, samples = table(*np.divmod(pairs, shape[0])), table(fragments.text_ids, splits)
    names = ((split, label) for split in survey.splits for label in range(shape[1]))
    rows = ((*name, *counts) for name, *counts in zip(names, texts, samples, strict=True))
    database.executemany("INSERT INTO label_counts VALUES (?, ?, ?, ?)", rows)


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
    lists = JsonLists(int(final_ids.max()) + 1)
    with open(folder / layout.TOKENS.file, "wb") as stream:
        for part, numbers in _blocks(folder, fragments):
            ids = final_ids[numbers]
            stream.write(ids.data)
            written = lists.of(ids, np.cumsum(fragments.lengths[part], dtype=np.int64))
            _write_samples(database, survey, fragments, splits, part, written)
            done += len(ids)
            progress("encode", done, total)
    (folder / PROVISIONAL).unlink()


class JsonLists:
    """Writes token ids as lists in JSON, with one look-up for all of their digits.

    ids  how many there are
    """

    def __init__(self, ids: int) -> None:
        #: Of every id its digits and a comma, filled up with zero bytes.
        self._digits = np.array([f"{number}, " for number in range(ids)], dtype="S")
        self._widths = np.char.str_len(self._digits)

    def of(self, ids: Numbers, ends: Numbers) -> Iterator[str]:
        """Yield the lists of consecutive ids that end at these places."""
        joined = self._digits[ids].tobytes().translate(None, b"\0").decode("ascii")
        places = np.cumsum(self._widths[ids])[ends - 1].tolist()
        for a, b in pairwise([0, *places]):
            yield f"[{joined[a : b - 2]}]"


def _write_samples(
    database: sqlite3.Connection,
    survey: Survey,
    fragments: Fragments,
    splits: SplitNumbers,
    part: slice,
    lists: Iterator[str],
) -> None:
    """Write a run of samples, with the lists of their ids."""
    numbers, text_ids = np.arange(part.start, part.stop), fragments.text_ids[part]
    columns = (
        numbers.tolist(),
        text_ids.tolist(),
        (numbers - np.searchsorted(fragments.text_ids, text_ids)).tolist(),
        lists,
        fragments.lengths[part].tolist(),
        survey.text_label[text_ids].tolist(),
        map(survey.splits.__getitem__, splits[part].tolist()),
        (fragments.firsts[part] + 1).tolist(),
        fragments.characters[part].tolist(),
    )
    rows = zip(*columns, strict=True)
    database.executemany("INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _write_arrays(folder: Path, survey: Survey, fragments: Fragments, splits: SplitNumbers) -> None:
    write_array(folder, layout.OFFSETS, offsets_of(fragments.lengths))
    write_array(folder, layout.LABELS, survey.text_label[fragments.text_ids])
    write_array(folder, layout.TEXT_IDS, fragments.text_ids)
    for number, split in enumerate(survey.splits):
        write_array(folder, split_ids(split), np.flatnonzero(splits == number))


def _summary(
    sources: Sequence[Source], survey: Survey, fragments: Fragments, splits: SplitNumbers, encoder: Encoder
) -> dict[str, Any]:
    """Return the manifest's entries beyond the description."""
    sizes = np.bincount(splits, minlength=len(survey.splits)).tolist()
    return {
        "files_read": [str(source.path) for source in sources],
        "rows_read": survey.source_rows,
        "skipped": survey.skipped.to_json(),
        "notable": survey.notable,
        "texts": fragments.texts,
        "cut_texts": fragments.cut_texts,
        "samples": len(fragments),
        "splits": dict(zip(survey.splits, sizes, strict=True)),
        "labels": survey.labels,
        "tokens": int(fragments.lengths.sum(dtype=np.int64)),
        "pad_id": encoder.pad_id,
        "unk_id": encoder.unk_id,
    }
