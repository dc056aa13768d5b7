"""Write a prepared set into a folder, from a survey and a second read of the sources."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from toolkit.workloads.text_classification.data.sources.source_files import TRAIN, Source
from toolkit.workloads.text_classification.data.sources.splits import SplitNumbers
from toolkit.workloads.text_classification.data.writer import PROVISIONAL, Fragments, write_texts

#: Tokens mapped to their ids at a time.
_BLOCK_TOKENS = 1 << 18

Numbers = npt.NDArray[np.integer]


def build(
    folder: Path,
    data: TextTable,
    sources: Sequence[Source],
    survey: Survey,
    encoder: Encoder,
    description: dict[str, Any],
    progress: Progress,
) -> None:
    """Write a whole prepared set into an empty folder and flush it to disk, the manifest last.

    Raises DataError if a source has changed, and OSError or sqlite3.Error if writing fails.
    """
    with new_database(folder, layout.SCHEMA) as database:
        files = enumerate(zip(sources, survey.source_rows, strict=True))
        lines = ((number, str(file.path), file.sha256, count) for number, (file, count) in files)
        database.executemany("INSERT INTO sources VALUES (?, ?, ?, ?)", lines)
        database.executemany("INSERT INTO labels VALUES (?, ?)", enumerate(survey.labels))
        fragments = write_texts(folder, database, data, sources, survey, encoder, progress)
        splits = survey.text_split
        of_samples = (
            cut(data, sources, survey.text_label[fragments.text_ids])
            if splits is None
            else splits[fragments.text_ids]
        )
        samples = _Samples(folder, database, survey, fragments, of_samples)
        final_ids, tokens = encoder.finalize(samples.train_counts())
        samples.write_label_counts()
        counted = ((number, *token) for number, token in enumerate(tokens))
        database.executemany("INSERT INTO tokens VALUES (?, ?, ?)", counted)
        dtype = token_dtype(len(tokens))
        samples.encode(final_ids.astype(dtype), progress)
        commit(database, layout.INDICES)
    encoder.save(folder)
    samples.write_arrays()
    for source in sources:
        source.check_unchanged()
    tokenizer = {
        "pad_id": encoder.pad_id, "unk_id": encoder.unk_id, "token_dtype": dtype,
        "vocabulary_size": len(tokens),
    }  # fmt: skip
    files_read = {"files_read": [str(source.path) for source in sources]}
    write_manifest(folder, description | files_read | samples.summary() | tokenizer)


@dataclass(frozen=True, slots=True)
class _Samples:
    """The samples of a set with written texts; `splits` [n] has the number of each sample's split."""

    folder: Path
    database: sqlite3.Connection
    survey: Survey
    fragments: Fragments
    splits: SplitNumbers

    def train_counts(self) -> npt.NDArray[np.int64]:
        """Return the count of each provisional number in the training split; [0] without that split."""
        counts, names = np.zeros(1, dtype=np.int64), self.survey.splits
        if TRAIN not in names:
            return counts
        for part, numbers in self._blocks():
            chosen = np.repeat(self.splits[part] == names.index(TRAIN), self.fragments.lengths[part])
            found = np.bincount(numbers[chosen], minlength=len(counts))
            found[: len(counts)] += counts
            counts = found
        return counts

    def write_label_counts(self) -> None:
        """Write the numbers of texts and of samples of each label in each split, zeros included."""
        names, text_ids = self.survey.splits, self.fragments.text_ids
        shape = len(names), len(self.survey.labels)

        def table(text_ids: Numbers, splits: Numbers) -> list[int]:
            cells = splits.astype(np.int64) * shape[1] + self.survey.text_label[text_ids]
            counts: list[int] = np.bincount(cells, minlength=shape[0] * shape[1]).tolist()
            return counts

        # One pair for each text with a fragment in a split.
        pairs = np.unique(text_ids * shape[0] + self.splits)
        texts, samples = table(*np.divmod(pairs, shape[0])), table(text_ids, self.splits)
        cells = ((split, label) for split in names for label in range(shape[1]))
        rows = ((*cell, *counts) for cell, *counts in zip(cells, texts, samples, strict=True))
        self.database.executemany("INSERT INTO label_counts VALUES (?, ?, ?, ?)", rows)

    def encode(self, final_ids: npt.NDArray[np.unsignedinteger[Any]], progress: Progress) -> None:
        """Map the provisional numbers to ids, block by block, and write the samples."""
        lengths = self.fragments.lengths
        done, total = 0, int(lengths.sum(dtype=np.int64))
        # The digits of each id, a comma and a space, padded with zero bytes.
        digits = np.array([f"{number}, " for number in range(int(final_ids.max()) + 1)], dtype="S")
        widths = np.char.str_len(digits)
        with open(self.folder / layout.TOKENS.file, "wb") as stream:
            for part, numbers in self._blocks():
                ids = final_ids[numbers]
                stream.write(ids.data)
                ends = np.cumsum(widths[ids])[np.cumsum(lengths[part], dtype=np.int64) - 1]
                self._write_rows(part, _json_lists(digits[ids], ends))
                done += len(ids)
                progress("encode", done, total)
        (self.folder / PROVISIONAL).unlink()

    def write_arrays(self) -> None:
        """Write the flat arrays other than the tokens."""
        text_ids = self.fragments.text_ids
        write_array(self.folder, layout.OFFSETS, offsets_of(self.fragments.lengths))
        write_array(self.folder, layout.LABELS, self.survey.text_label[text_ids])
        write_array(self.folder, layout.TEXT_IDS, text_ids)
        for number, split in enumerate(self.survey.splits):
            write_array(self.folder, split_ids(split), np.flatnonzero(self.splits == number))

    def summary(self) -> dict[str, Any]:
        """Return the manifest's entries about texts and samples."""
        survey, fragments = self.survey, self.fragments
        sizes = np.bincount(self.splits, minlength=len(survey.splits)).tolist()
        return {
            "rows_read": survey.source_rows,
            "skipped": survey.skipped.to_json(),
            "notable": survey.notable,
            "texts": len(survey),
            "cut_texts": fragments.cut_texts,
            "samples": len(fragments),
            "splits": dict(zip(survey.splits, sizes, strict=True)),
            "labels": survey.labels,
            "tokens": int(fragments.lengths.sum(dtype=np.int64)),
        }

    def _blocks(self) -> Iterator[tuple[slice, npt.NDArray[np.uint32]]]:
        """Yield blocks of whole samples and their provisional tokens."""
        ends = np.cumsum(self.fragments.lengths, dtype=np.int64)
        first = done = 0
        with open(self.folder / PROVISIONAL, "rb") as stream:
            while first < len(ends):
                stop = max(int(np.searchsorted(ends, done + _BLOCK_TOKENS, side="right")), first + 1)
                count = int(ends[stop - 1]) - done
                yield slice(first, stop), np.frombuffer(stream.read(count * NUMBER.itemsize), NUMBER)
                first, done = stop, done + count

    def _write_rows(self, part: slice, lists: Iterator[str]) -> None:
        """Write the rows of a block of samples.

        lists  the token ids of each sample, as JSON
        """
        survey, fragments = self.survey, self.fragments
        numbers, text_ids = np.arange(part.start, part.stop), fragments.text_ids[part]
        columns = (
            numbers.tolist(),
            text_ids.tolist(),
            (numbers - np.searchsorted(fragments.text_ids, text_ids)).tolist(),
            lists,
            fragments.lengths[part].tolist(),
            survey.text_label[text_ids].tolist(),
            map(survey.splits.__getitem__, self.splits[part].tolist()),
            (fragments.firsts[part] + 1).tolist(),
            fragments.characters[part].tolist(),
        )
        rows = zip(*columns, strict=True)
        self.database.executemany("INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _json_lists(digits: npt.NDArray[np.bytes_], ends: Numbers) -> Iterator[str]:
    """Yield JSON lists of consecutive ids; ends: where each list ends, in characters."""
    joined = digits.tobytes().translate(None, b"\0").decode("ascii")
    for a, b in pairwise([0, *ends.tolist()]):
        yield f"[{joined[a : b - 2]}]"
