"""Write a prepared set: make the shards in parallel, then join them into flat arrays."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from toolkit.data.prepared.arrays import write_array
from toolkit.data.prepared.columns import token_dtype
from toolkit.data.prepared.database import commit, new_database
from toolkit.data.prepared.manifest import write_manifest
from toolkit.data.ragged import Array, offsets_of
from toolkit.errors import DataError
from toolkit.workload import Progress
from toolkit.workloads.spelling.config.data import SpellingTexts
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.pool import make_all
from toolkit.workloads.spelling.data.samples.shards import Job, Made, Shard, ShardMaker, read_shard
from toolkit.workloads.spelling.data.samples.sources import Source
from toolkit.workloads.spelling.tokenizers.tokenizer import load_tokenizer

STAGE = SpellingTexts.RESUMABLE_STAGE
_SAMPLE = "INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_LEFT_OUT = "INSERT INTO left_out VALUES (?, ?, ?, ?, ?, ?, ?)"


def make_shards(
    parts: Path, data: SpellingTexts, sources: tuple[Source, ...], workers: int, progress: Progress
) -> tuple[Job, int]:
    """Make the missing shards; return the job, and the number of texts that were read.

    Raises DataError, OSError. Finished shards are kept, and the next call makes the rest.
    """
    parts.mkdir(exist_ok=True)
    job = Job.plan(parts, data, sources)
    for source in sources:
        for part in source.parts:
            part.check_unchanged()
    every = list(job.shards())
    missing = [shard for shard in every if not shard.file(parts).exists()]
    total = _size(every)
    made = total - _size(missing)
    progress(STAGE, made, total)
    for shard in make_all(job, missing, workers):
        made += _size([shard])
        progress(STAGE, made, total)
    return job, _size(missing)


def _size(shards: Sequence[Shard]) -> int:
    return sum(shard.last - shard.first for shard in shards)


def join(folder: Path, job: Job, description: dict[str, Any], progress: Progress) -> None:
    """Write a whole prepared set into an empty folder and flush it to disk; the manifest comes last.

    Raises DataError if a split that the set must have is empty, OSError and sqlite3.Error if writing fails.
    """
    data = job.data
    tokenizer = load_tokenizer(Path(data.tokenizer_path))
    output = load_tokenizer(Path(data.output_tokenizer_path)) if data.output_tokenizer_path else None
    dtypes = dict(layout.DTYPES)
    dtypes[layout.TOKENS] = token_dtype(len(tokenizer))
    dtypes[layout.OUTPUTS] = token_dtype(len(output)) if output else "<u2"
    with ExitStack() as stack:
        connection = stack.enter_context(new_database(folder, layout.SCHEMA))
        _write_sources(connection, job)
        streams = {
            name: stack.enter_context(open(folder / layout.column(name).file, "wb")) for name in dtypes
        }
        joined = _Joined(job=job, dtypes=dtypes, streams=streams, connection=connection)
        for number, shard in enumerate(shards := list(job.shards()), start=1):
            joined.add(shard, _read(job, shard))
            progress("join shards", number, len(shards))
        commit(connection, layout.INDICES)
    _check_splits(job, joined.splits)
    for group, lengths in joined.lengths.items():
        write_array(folder, layout.offsets(group), offsets_of(np.concatenate(lengths)))
    _copy(data, folder)
    write_manifest(folder, description | {
        "samples": joined.count,
        "splits": {name: joined.splits[name] for name in layout.SPLITS if joined.splits[name]},
        "left_out": {reason: joined.left_out[reason] for reason in sorted(joined.left_out)},
        "unlabelled": {name: joined.unlabelled[name] for name in layout.SPLITS if joined.unlabelled[name]},
        "dtypes": dtypes,
        "vocabulary_size": len(tokenizer),
        "pad_id": tokenizer.padding,
        "output_vocabulary_size": None if output is None else len(output),
        "has_dictionary": data.dictionary is not None,
    })  # fmt: skip


@dataclass(slots=True, kw_only=True)
class _Joined:
    """Writes the set shard by shard; only the lengths of the samples' lists are kept in memory."""

    job: Job
    dtypes: dict[str, str]
    streams: Mapping[str, BinaryIO]
    connection: sqlite3.Connection
    count: int = 0
    splits: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    unlabelled: Counter[str] = field(default_factory=Counter)
    lengths: defaultdict[str, list[Array]] = field(default_factory=lambda: defaultdict(list))

    def add(self, shard: Shard, made: Made) -> None:
        lines, splits, wrong = (np.array([row[at] for row in made.samples], np.int64) for at in range(3))
        numbers = {
            layout.ERRORS: wrong, layout.LINES: lines, layout.SPLIT: splits,
            layout.SOURCES: np.full(len(lines), shard.source),
        }  # fmt: skip
        for name, values in {**made.lists, **numbers}.items():
            self.streams[name].write(values.astype(self.dtypes[name]).data)
        for group, lengths in made.lengths.items():
            self.lengths[group].append(lengths)
        self.connection.executemany(_SAMPLE, self._rows(shard.source, made))
        for line, split, text, tokens, reason in made.left_out:
            row = (shard.source, line + 1, layout.SPLITS[split], text, tokens, len(text.split()), reason)
            self.connection.execute(_LEFT_OUT, row)
            self.left_out[reason] += 1
        self.count += len(lines)
        self.splits.update(layout.SPLITS[split] for split in splits.tolist())

    def _rows(self, source: int, made: Made) -> Iterator[tuple[Any, ...]]:
        sizes = (made.lengths[name].tolist() for name in (layout.TOKENS, layout.LABELS))
        numbered = enumerate(zip(made.samples, *sizes, _errors(made), strict=True), start=self.count)
        for number, ((line, split, _, text, target), tokens, words, errors) in numbered:
            split_name = layout.SPLITS[split]
            self.unlabelled[split_name] += errors is None
            yield number, source, line + 1, split_name, text, target, tokens, words, errors


def _errors(made: Made) -> list[int | None]:
    """Number of wrong words of each text; None if the label of a word is not known."""
    labels, lengths = made.lists[layout.LABELS], made.lengths[layout.LABELS]
    ends = np.cumsum(lengths)
    totals = (offsets_of(labels == 1), offsets_of(labels == layout.UNKNOWN))
    counts, missing = (total[ends] - total[ends - lengths] for total in totals)
    return [
        None if gap else count for count, gap in zip(counts.tolist(), (missing > 0).tolist(), strict=True)
    ]


def _read(job: Job, shard: Shard) -> Made:
    made = read_shard(shard.file(job.parts))
    if made is None:
        # The machine may have stopped before the file was flushed to disk.
        ShardMaker(job).make(shard)
        made = read_shard(shard.file(job.parts))
    assert made is not None
    return made


def _write_sources(connection: sqlite3.Connection, job: Job) -> None:
    rows = [
        (number, str(source.path), source.sha256, source.split, job.lines(number))
        for number, source in enumerate(job.sources)
    ]
    connection.executemany("INSERT INTO sources VALUES (?, ?, ?, ?, ?)", rows)


def _check_splits(job: Job, splits: Counter[str]) -> None:
    first = job.sources[0]
    wanted = dict.fromkeys(layout.SPLITS[:2], first.path) if first.split is None else {}
    wanted |= {source.split: source.path for source in reversed(job.sources) if source.split is not None}
    for split, path in wanted.items():
        if not splits[split]:
            raise DataError(
                f"{path}: no text for {split} is left, expected at least one; are all texts empty, or "
                f"longer than data.max_length ({job.data.max_length} tokens)?"
            )


def _copy(data: SpellingTexts, folder: Path) -> None:
    """Copy tokenizers and dictionary, because the originals may change before another file is encoded."""
    for key, name in layout.ENCODERS.items():
        if (path := getattr(data, key)) is not None:
            shutil.copyfile(path, folder / name)
